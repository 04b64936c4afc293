package artifact_test

import (
	"aimon.at/vfsd/artifact"
	"aimon.at/vfsd/ctl/server"
	"aimon.at/vfsd/fusefs"
)

// What other packages need of this one.
var (
	_ server.Artifacts = (*artifact.Library)(nil)
	_ server.Tokens    = (*artifact.Tokens)(nil)
	_ fusefs.Recorder  = (*artifact.Recorder)(nil)
)
