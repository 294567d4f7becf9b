package comments

import (
	"fmt"
	"net/url"
	"strings"

	"github.com/weir-gitops/weir/render/diag"
	"github.com/weir-gitops/weir/render/visible"
	"github.com/weir-gitops/weir/status/forge"
	"github.com/weir-gitops/weir/status/report"
	"github.com/weir-gitops/weir/status/wording"
)

// linked is a position as a link to the line at the proposed commit, or as text where
// the repository's address is not known.
func (c *comment) linked(pos diag.Position) string {
	text := escaped(wording.FileLine(pos), longestName)
	if link := c.fileURL(pos); link != "" {
		return "[" + text + "](" + link + ")"
	}
	return text
}

// commit is a commit's short hash as a link.
func (c *comment) commit(sha string) string {
	text := wording.Code(wording.Short(visible.Line(sha)))
	_, _, commit := pathsOf(c.o.Forge)
	if c.repository == "" || !report.Hexadecimal.MatchString(sha) {
		return text
	}
	return "[" + text + "](" + c.repository + commit + sha + ")"
}

func (c *comment) fileURL(pos diag.Position) string {
	if c.repository == "" || !report.Hexadecimal.MatchString(c.HeadSHA) || !pos.Known() || strings.HasPrefix(pos.File, "/") {
		return ""
	}
	parts := strings.Split(pos.File, "/")
	for i, p := range parts {
		if p == "" || p == "." || p == ".." {
			return ""
		}
		parts[i] = url.PathEscape(p)
	}
	_, file, _ := pathsOf(c.o.Forge)
	link := report.SafeURL(c.repository + file + c.HeadSHA + "/" + strings.Join(parts, "/"))
	if link != "" && pos.Line > 0 {
		link += fmt.Sprintf("#L%d", pos.Line)
	}
	return link
}

// repositoryURL is the address on the web of the repository that a pull request is
// in, "" where its own address is not in the forge's form.
func repositoryURL(pull string, kind forge.Kind) string {
	between, _, _ := pathsOf(kind)
	link := report.SafeURL(pull)
	i := strings.LastIndex(link, between)
	if i < 0 || strings.ContainsAny(link, "?#") {
		return ""
	}
	return link[:i]
}
