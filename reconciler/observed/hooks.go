package observed

import (
	"cmp"

	"github.com/weir-gitops/weir/render/intent"
)

// GroupHooks is AWS's answer about a group's lifecycle hooks.
type GroupHooks struct {
	// Hooks are sorted by name, AWS's defaults filled in.
	Hooks []intent.LifecycleHook
	// ReadAtPass is false for hooks remembered from an earlier pass.
	ReadAtPass bool
}

// TagHooks says which lifecycle hooks of a group are weir's, in the form of
// keyMarks: a hook that Git drops is removed, and another's hook stays.
const TagHooks = OwnTagPrefix + "hooks"

// Auto Scaling's defaults for a lifecycle hook (API reference, PutLifecycleHook).
const (
	defaultHookTimeout = 3600 // seconds
	defaultHookResult  = "ABANDON"
)

// HookDefaults fills in what AWS sets where a hook leaves it open.
func HookDefaults(h intent.LifecycleHook) intent.LifecycleHook {
	if h.HeartbeatTimeout == 0 {
		h.HeartbeatTimeout = defaultHookTimeout
	}
	h.DefaultResult = cmp.Or(h.DefaultResult, defaultHookResult)
	return h
}
