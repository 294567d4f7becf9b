package commits

import (
	"crypto/sha256"
	"encoding/hex"
	"net/url"
	"strings"

	"github.com/weir-gitops/weir/render/visible"
	"github.com/weir-gitops/weir/status/forge"
)

// contexts names the contexts of the statuses of one source, and builds their links and texts within the
// limits of its forge.
type contexts struct {
	instance, pageURL string
	limits            forge.Limits
}

// aggregate returns the context of the status over all targets.
func (c contexts) aggregate() string { return contextName(c.instance+"/apply", c.limits.Context) }

// target returns the context of a target's status.
func (c contexts) target(name string) string {
	return contextName(c.instance+"/apply/"+name, c.limits.Context)
}

// plan returns the context of the status of a pull request.
func (c contexts) plan() string { return contextName(c.instance+"/plan", c.limits.Context) }

// link returns the address of a target on weir's page, or of its first page for an empty name.
func (c contexts) link(target string) string {
	if c.pageURL == "" {
		return ""
	}
	base := strings.TrimSuffix(c.pageURL, "/")
	if target == "" {
		return base + "/"
	}
	return base + "/targets/" + url.PathEscape(target)
}

// description shortens a text to one line within the limit of the forge.
func (c contexts) description(text string) string {
	return visible.Clip(visible.Line(text), c.limits.Description)
}

// ofTarget returns the status of a target.
func (c contexts) ofTarget(name string, state forge.CommitState, text string) forge.CommitStatus {
	return forge.CommitStatus{Context: c.target(name), State: state, TargetURL: c.link(name), Description: c.description(text)}
}

// ofAll returns the status over all targets.
func (c contexts) ofAll(state forge.CommitState, text string) forge.CommitStatus {
	return forge.CommitStatus{Context: c.aggregate(), State: state, TargetURL: c.link(""), Description: c.description(text)}
}

// ofHead returns the status of a pull request.
func (c contexts) ofHead(h HeadStatus) forge.CommitStatus {
	return forge.CommitStatus{Context: c.plan(), State: h.State, TargetURL: h.Link, Description: c.description(h.Text)}
}

// contextName shortens a context to limit. It replaces the end with a hash of the whole name, so that two
// long names have different contexts, and every process computes the same context.
func contextName(s string, limit int) string {
	if visible.Units(s) <= limit {
		return s
	}
	sum := sha256.Sum256([]byte(s))
	suffix := "-" + hex.EncodeToString(sum[:4])
	return strings.TrimSuffix(visible.Clip(s, limit-len(suffix)+1), "…") + suffix
}
