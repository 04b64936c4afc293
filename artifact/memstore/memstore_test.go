package memstore_test

import (
	"testing"

	"aimon.at/vfsd/artifact"
	"aimon.at/vfsd/artifact/artifacttest"
	"aimon.at/vfsd/artifact/memstore"
)

func TestStore(t *testing.T) {
	artifacttest.Test(t, func(*testing.T) artifact.Store { return memstore.New() })
}

func TestTokens(t *testing.T) {
	artifacttest.TestTokens(t, func(*testing.T) artifact.TokenStore { return memstore.NewTokens() })
}
