package comments

import (
	"github.com/weir-gitops/weir/render/diag"
	"github.com/weir-gitops/weir/render/visible"
	"github.com/weir-gitops/weir/status/wording"
)

// linked returns a position as a link to the line at the proposed commit, or as text if the repository's
// address is unknown.
func (c *comment) linked(pos diag.Position) string {
	text := escaped(wording.FileLine(pos), longestName)
	if link := c.links.File(c.HeadSHA, pos); link != "" {
		return "[" + text + "](" + link + ")"
	}
	return text
}

// commit returns a commit's short hash as a link.
func (c *comment) commit(sha string) string {
	text := wording.Code(wording.Short(visible.Line(sha)))
	if link := c.links.Commit(sha); link != "" {
		return "[" + text + "](" + link + ")"
	}
	return text
}
