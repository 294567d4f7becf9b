package observed

import (
	"cmp"

	"github.com/weir-gitops/weir/render/intent"
)

// GroupHooks is AWS's answer about a group's lifecycle hooks.
type GroupHooks struct {
	// Hooks are sorted by name, with AWS's defaults.
	Hooks []intent.LifecycleHook
	// ReadAtPass is false for hooks from an earlier pass.
	ReadAtPass bool
}

// TagHooks records which lifecycle hooks of a group belong to weir, in the form of KeyMarks. weir deletes
// such a hook if Git no longer has it, and leaves all other hooks.
const TagHooks = OwnTagPrefix + "hooks"

// Auto Scaling's defaults for a lifecycle hook (API reference, PutLifecycleHook).
const (
	defaultHookTimeout = 3600 // seconds
	defaultHookResult  = "ABANDON"
)

// HookDefaults fills in AWS's defaults for unset values.
func HookDefaults(h intent.LifecycleHook) intent.LifecycleHook {
	if h.HeartbeatTimeout == 0 {
		h.HeartbeatTimeout = defaultHookTimeout
	}
	h.DefaultResult = cmp.Or(h.DefaultResult, defaultHookResult)
	return h
}
