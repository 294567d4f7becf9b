package status

import (
	"fmt"
	"net/url"
	"regexp"
	"strings"

	"github.com/weir-gitops/weir/render/diag"
	"github.com/weir-gitops/weir/status/forge"
	"github.com/weir-gitops/weir/status/wording"
)

// place is a position as a link to the line at the proposed commit, or as text
// where the repository's address is not known.
func (c *comment) place(pos diag.Position) string {
	text := escaped(wording.Place(pos), longestName)
	if link := c.fileURL(pos); link != "" {
		return "[" + text + "](" + link + ")"
	}
	return text
}

// commit is a commit's short hash as a link.
func (c *comment) commit(sha string) string {
	text := wording.Code(short(oneLine(sha)))
	_, _, commit := pathsOf(c.o.Forge)
	if c.repository == "" || !hexadecimal.MatchString(sha) {
		return text
	}
	return "[" + text + "](" + c.repository + commit + sha + ")"
}

var (
	hexadecimal = regexp.MustCompile(`^[0-9a-f]{7,64}$`)
	hostname    = regexp.MustCompile(`^(\[[0-9a-fA-F:.]+\]|[A-Za-z0-9._-]+)(:[0-9]+)?$`)
)

func (c *comment) fileURL(pos diag.Position) string {
	if c.repository == "" || !hexadecimal.MatchString(c.HeadSHA) || !pos.Known() || strings.HasPrefix(pos.File, "/") {
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
	link := safeURL(c.repository + file + c.HeadSHA + "/" + strings.Join(parts, "/"))
	if link != "" && pos.Line > 0 {
		link += fmt.Sprintf("#L%d", pos.Line)
	}
	return link
}

// repositoryURL is the address on the web of the repository that a pull request is
// in, "" where its own address is not as the forge has them.
func repositoryURL(pull string, kind forge.Kind) string {
	between, _, _ := pathsOf(kind)
	link := safeURL(pull)
	i := strings.LastIndex(link, between)
	if i < 0 || strings.ContainsAny(link, "?#") {
		return ""
	}
	return link[:i]
}

// safeURL is an address of the web that cannot end a link in Markdown or HTML, ""
// for what is none.
func safeURL(raw string) string {
	u, err := url.Parse(raw)
	if err != nil || u.Scheme != "http" && u.Scheme != "https" || u.User != nil || !hostname.MatchString(u.Host) {
		return ""
	}
	var b strings.Builder
	b.WriteString(u.Scheme + "://" + u.Host)
	for _, c := range []byte(strings.TrimPrefix(u.String(), u.Scheme+"://"+u.Host)) {
		if c >= 'a' && c <= 'z' || c >= 'A' && c <= 'Z' || c >= '0' && c <= '9' || strings.IndexByte("-._~:/?#@$&+,;=%", c) >= 0 {
			b.WriteByte(c)
		} else {
			fmt.Fprintf(&b, "%%%02X", c)
		}
	}
	return b.String()
}
