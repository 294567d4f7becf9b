package step

import (
	"github.com/weir-gitops/weir/render/intent"
)

// PutHook makes a lifecycle hook of a group, or changes the one of that name.
type PutHook struct {
	Group string
	Hook  intent.LifecycleHook
}

// DeleteHook removes a lifecycle hook of a group. One that is gone already is done.
type DeleteHook struct {
	Group string
	Name  string
}

// HoldMachine asks AWS to wait longer for the answer to a lifecycle action: the heartbeat
// of who works on it.
type HoldMachine struct {
	Group, Hook, Instance string
}

// ReleaseMachine answers a lifecycle action.
type ReleaseMachine struct {
	Group, Hook, Instance string
	// Result is CONTINUE or ABANDON.
	Result string
}
