package step

import (
	"github.com/weir-gitops/weir/render/intent"
)

// PutHook creates a lifecycle hook of a group, or changes the existing one with that name.
type PutHook struct {
	Group string
	Hook  intent.LifecycleHook
}

// DeleteHook removes a lifecycle hook of a group. If the hook is gone already, the action has
// succeeded.
type DeleteHook struct {
	Group string
	Name  string
}

// HoldMachine makes AWS wait longer for the answer to a lifecycle action, by a heartbeat.
type HoldMachine struct {
	Group, Hook, Instance string
}

// ReleaseMachine answers a lifecycle action.
type ReleaseMachine struct {
	Group, Hook, Instance string
	// Result is CONTINUE or ABANDON.
	Result string
}
