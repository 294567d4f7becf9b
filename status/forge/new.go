package forge

import (
	"cmp"
	"fmt"
	"net/http"
	"slices"
	"strings"
	"time"
	"unicode/utf8"

	"github.com/weir-gitops/weir/status/forge/forgehttp"
)

// ClientOptions names a repository on a forge.
type ClientOptions struct {
	// Kind needs a client: WebhooksOnly of its profile is false.
	Kind Kind
	// URL is the forge's address, such as https://git.example.com. For GitHub,
	// empty means github.com.
	URL string
	// Repository is owner/name; on GitLab, the project's path with all groups.
	Repository string
	// Ref is the branch or tag that statuses are about, if known. Only GitLab uses it.
	Ref   string
	Token forgehttp.Token
	// Transport defaults to http.DefaultTransport.
	Transport http.RoundTripper
}

// New returns a client of one repository. In addition to the permissions for commit statuses, its
// token needs:
//
//	GitHub   Pull requests: read and write (fine-grained, App), or the scope repo (classic)
//	GitLab   the scope api, and the role Developer
//	Gitea    the scopes read:repository, write:issue and read:user; to read the permissions
//	         of other users, its user must be an administrator of the repository
func New(o ClientOptions) (Client, error) {
	parts := strings.Split(o.Repository, "/")
	if len(parts) < 2 || slices.ContainsFunc(parts, func(p string) bool { return p == "" || p == "." || p == ".." }) {
		return nil, fmt.Errorf("read repository %q: want owner/name", forgehttp.Quote(o.Repository))
	}
	p := ProfileOf(o.Kind)
	if !p.groups && len(parts) != 2 {
		return nil, fmt.Errorf("read repository %q: want owner/name", forgehttp.Quote(o.Repository))
	}
	if p.open == nil {
		return nil, fmt.Errorf("open forge %s: it has no pull requests that weir can read; the kinds of forges are %s", o.Kind, strings.Join(Kinds(), ", "))
	}
	base, err := forgehttp.ParseURL(strings.TrimSuffix(cmp.Or(o.URL, p.address), "/"))
	if err != nil {
		return nil, err
	}
	base.RawQuery, base.Fragment = "", ""
	return p.open(p, base, o)
}

// maxComment is the maximum size in bytes of a comment in the list for all pull requests. A command is in
// the first line.
const maxComment = 2 << 10

// cut returns the start of s in new memory.
func cut(s string, end int) string {
	if len(s) <= end {
		return s
	}
	for !utf8.RuneStart(s[end]) {
		end--
	}
	return strings.Clone(s[:end])
}

// brief returns a comment with only the text that the list for all pull requests keeps.
func brief(c Comment) Comment {
	c.Body = Beginning(c.Body)
	return c
}

// Beginning returns the part of a comment's text that CommentsSince keeps.
func Beginning(body string) string { return cut(body, maxComment) }

// inOrder sorts comments, the oldest first. It removes duplicates, and comments that were not changed since
// a time. The times of forges are whole seconds.
func inOrder(list []Comment, since time.Time) []Comment {
	since = since.Truncate(time.Second)
	list = slices.DeleteFunc(list, func(c Comment) bool { return c.UpdatedAt.Before(since) })
	slices.SortFunc(list, func(a, b Comment) int { return cmp.Or(a.CreatedAt.Compare(b.CreatedAt), cmp.Compare(a.ID, b.ID)) })
	return slices.CompactFunc(list, func(a, b Comment) bool { return a.ID == b.ID })
}

// plausible reports whether a text is a possible login that is safe in a path.
func plausible(user string) bool {
	return user != "" && len(user) <= 255 && user != "." && user != ".." && !strings.ContainsAny(user, "/\\?#%")
}

// lastAnswer stores the last response to a request.
type lastAnswer[T any] struct {
	name, etag string
	value      T
}
