package memstore_test

import (
	"testing"

	"aimon.at/vfsd/session"
	"aimon.at/vfsd/session/memstore"
	"aimon.at/vfsd/session/sessiontest"
)

func TestStore(t *testing.T) {
	sessiontest.Test(t, func(*testing.T) session.Store { return memstore.New() })
}
