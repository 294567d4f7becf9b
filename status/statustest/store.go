package statustest

import (
	"sync"
	"testing"

	"github.com/weir-gitops/weir/reconciler/state"
)

// stores contains the open stores of running tests.
var stores sync.Map

// StoreIn returns the store in a directory, shared by simulated processes that use it one after another.
func StoreIn(t testing.TB, dir string) state.Store {
	t.Helper()
	if s, open := stores.Load(dir); open {
		return s.(state.Store)
	}
	db, err := state.Open(dir)
	if err != nil {
		t.Fatal(err)
	}
	stores.Store(dir, db)
	t.Cleanup(func() {
		stores.Delete(dir)
		if err := db.Close(); err != nil {
			t.Error(err)
		}
	})
	return db
}
