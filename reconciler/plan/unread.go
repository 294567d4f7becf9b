package plan

import (
	"github.com/weir-gitops/weir/reconciler/observed"
	"github.com/weir-gitops/weir/render/diag"
)

// unreadOrphan says that an orphan stays because it cannot be looked at.
func (c *orphans) unreadOrphan(o orphan, err *observed.Error) bool {
	if err == nil {
		return false
	}
	c.say(diag.Warning, o, "orphan-kept", "nothing in Git wants it any more, but AWS does not let weir read it, so it stays: "+err.Message, "")
	return true
}
