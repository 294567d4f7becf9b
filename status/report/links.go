package report

import (
	"fmt"
	"net/url"
	"regexp"
	"strconv"
	"strings"

	"github.com/weir-gitops/weir/render/diag"
) // WebLinks makes the addresses of commits, files and pull requests of a repository
// on its forge, for a browser. The zero value makes none.
type Links struct {
	base  string
	paths webPaths
}

// webPaths is where a forge shows things, below the repository's address. The ways
// are those that the forges' own pages use.
type webPaths struct{ commit, file, lines, pull string }

var forgePaths = map[string]webPaths{
	"github":  {"/commit/", "/blob/", "#L", "/pull/"},
	"gitlab":  {"/-/commit/", "/-/blob/", "#L", "/-/merge_requests/"},
	"gitea":   {"/commit/", "/src/commit/", "#L", "/pulls/"},
	"forgejo": {"/commit/", "/src/commit/", "#L", "/pulls/"},
}

// NewLinks returns the links of the repository at address, which is one for Git
// or for a browser. The kind of forge is github, gitlab, gitea or forgejo; where
// it is empty, the host's name must tell it, as a guess would give broken links.
func NewLinks(address, kind string) Links {
	host, path := hostAndPath(address)
	if host == "" {
		return Links{}
	}
	name := strings.ToLower(host)
	if kind == "" {
		for part, forge := range map[string]string{"github": "github", "gitlab": "gitlab", "gitea": "gitea", "forgejo": "forgejo", "codeberg": "forgejo"} {
			if strings.HasPrefix(name, part+".") {
				kind = forge
			}
		}
	}
	way, ok := forgePaths[kind]
	if !ok {
		return Links{}
	}
	scheme := "https"
	if strings.HasPrefix(address, "http://") {
		scheme = "http"
	}
	return Links{base: (&url.URL{Scheme: scheme, Host: host, Path: path}).String(), paths: way}
}

// hostAndPath is the host and the path of a repository's pages, empty where the
// address names no host. A port of SSH is not one of the pages.
func hostAndPath(address string) (host, path string) {
	u, err := url.Parse(address)
	switch {
	case err == nil && (u.Scheme == "https" || u.Scheme == "http"):
		host, path = u.Host, u.Path
	case err == nil && u.Scheme == "ssh":
		host, path = u.Hostname(), u.Path
	case strings.Contains(address, "://"):
		return "", ""
	default: // user@host:path
		before, after, ok := strings.Cut(address, ":")
		if !ok || strings.Contains(before, "/") {
			return "", ""
		}
		host, path = before[strings.LastIndex(before, "@")+1:], "/"+strings.TrimPrefix(after, "/")
	}
	path = "/" + strings.TrimSuffix(strings.Trim(path, "/"), ".git")
	if host == "" || path == "/" {
		return "", ""
	}
	return host, path
}

// Repository is the address of the repository, empty without one.
func (l Links) Repository() string { return l.base }

// Commit is the address of a commit.
func (l Links) Commit(sha string) string {
	if l.base == "" || !isHash(sha) {
		return ""
	}
	return l.base + l.paths.commit + sha
}

// File is the address of a line of a file at a commit.
func (l Links) File(sha string, at diag.Position) string {
	if l.base == "" || !isHash(sha) || at.File == "" {
		return ""
	}
	parts := strings.Split(at.File, "/")
	for i, p := range parts {
		if p == "." || p == ".." {
			return "" // a browser would leave the repository by it
		}
		parts[i] = url.PathEscape(p)
	}
	out := l.base + l.paths.file + sha + "/" + strings.Join(parts, "/")
	if at.Line > 0 {
		out += l.paths.lines + strconv.Itoa(at.Line)
	}
	return out
}

// Pull is the address of a pull request.
func (l Links) Pull(number int64) string {
	if l.base == "" || number < 1 {
		return ""
	}
	return l.base + l.paths.pull + strconv.FormatInt(number, 10)
}

func isHash(s string) bool {
	return len(s) >= 7 && strings.Trim(s, "0123456789abcdef") == ""
}

var (
	Hexadecimal = regexp.MustCompile(`^[0-9a-f]{7,64}$`)
	hostname    = regexp.MustCompile(`^(\[[0-9a-fA-F:.]+\]|[A-Za-z0-9._-]+)(:[0-9]+)?$`)
)

// SafeURL is an address of the web that cannot end a link in Markdown or HTML, ""
// for any other text.
func SafeURL(raw string) string {
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
