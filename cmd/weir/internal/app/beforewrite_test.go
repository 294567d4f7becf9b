package app

import (
	"errors"
	"testing"

	"github.com/weir-gitops/weir/reconciler"
	"github.com/weir-gitops/weir/reconciler/coord/coordtest"
	"github.com/weir-gitops/weir/reconciler/state"
	"github.com/weir-gitops/weir/reconciler/state/statetest"
)

// An account in which AWS holds nothing says nothing of another one that is reached by another role, also where the numbers of both are not configured: in
// a store that lost its records, what AWS holds there is a loss.
func TestRecordsOfAnotherAccountDoNotCount(t *testing.T) {
	t.Parallel()
	store := statetest.Join(t, coordtest.NewMemory(), "a")
	by := func(account string) reconciler.ScopeKey {
		return reconciler.ScopeKey{Region: "eu-west-1", RoleARN: "arn:aws:iam::" + account + ":role/weir"}
	}
	empty, ours := "111111111111", "222222222222"
	for range 2 {
		if err := beforeWrite(store, false, empty, by(empty))(false); err != nil {
			t.Fatal(err)
		}
	}
	if err := beforeWrite(store, false, empty, by(empty))(true); err != nil {
		t.Errorf("what weir made since is taken for something of before: %v", err)
	}
	var lost *state.LossError
	if err := beforeWrite(store, false, ours, by(ours))(true); !errors.As(err, &lost) {
		t.Errorf("AWS holds resources of ours, of which the store knows nothing: %v", err)
	}
}
