package statustest

import (
	"sync"
	"testing"

	"github.com/weir-gitops/weir/reconciler/state"
)

// stores are open while their test runs.
var stores sync.Map

// StoreIn is the store in a directory, for the processes that use it one after another.
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
