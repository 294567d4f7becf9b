package forge

import (
	"net/url"
	"regexp"
	"strconv"
	"strings"

	"github.com/weir-gitops/weir/render/diag"
)

// paths holds what a forge appends to a repository's address for its own pages, and for a file's
// and a pull request's. A hash, a number or a path follows each.
type paths struct{ commit, file, line, pull, comment string }

// Links makes the web addresses of commits, files and pull requests of one repository. The
// zero value makes none.
type Links struct {
	base  string
	paths paths
}

// NewLinks returns the links of the repository at an address, which is one for Git or for a
// browser. If the kind is empty, the host's name must show it: a guess would give broken
// links.
func NewLinks(address string, kind Kind) Links {
	host, path := hostAndPath(address)
	if host == "" {
		return Links{}
	}
	p := ProfileOf(kind)
	if kind == "" {
		p = profileByHost(host)
	}
	if p.paths == (paths{}) {
		return Links{}
	}
	scheme := "https"
	if strings.HasPrefix(address, "http://") {
		scheme = "http"
	}
	return Links{base: (&url.URL{Scheme: scheme, Host: host, Path: path}).String(), paths: p.paths}
}

// profileByHost returns the profile that a host's name shows, such as gitlab.example.com.
func profileByHost(host string) Profile {
	for _, p := range profiles() {
		for _, begin := range p.hosts {
			if strings.HasPrefix(strings.ToLower(host), begin) {
				return p
			}
		}
	}
	return Profile{}
}

// LinksBeside returns the links of the repository that a pull request is in, by the pull
// request's own web address. It makes none if that address is not in the forge's form.
func (p Profile) LinksBeside(pull string) Links {
	i := strings.LastIndex(pull, p.paths.pull)
	if i < 0 || p.paths.pull == "" || strings.ContainsAny(pull, "?#") {
		return Links{}
	}
	return Links{base: pull[:i], paths: p.paths}
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

var hashForm = regexp.MustCompile(`^[0-9a-f]{7,64}$`)

// Commit is the address of a commit.
func (l Links) Commit(sha string) string {
	if l.base == "" || !hashForm.MatchString(sha) {
		return ""
	}
	return l.base + l.paths.commit + sha
}

// File is the address of a line of a file at a commit.
func (l Links) File(sha string, at diag.Position) string {
	if l.base == "" || !hashForm.MatchString(sha) || !at.Known() {
		return ""
	}
	parts := strings.Split(at.File, "/")
	for i, p := range parts {
		if p == "" || p == "." || p == ".." {
			return "" // a browser would leave the repository by it
		}
		parts[i] = url.PathEscape(p)
	}
	out := l.base + l.paths.file + sha + "/" + strings.Join(parts, "/")
	if at.Line > 0 {
		out += l.paths.line + strconv.Itoa(at.Line)
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

// Comment is the address of a comment on a pull request.
func (l Links) Comment(number, comment int64) string {
	pull := l.Pull(number)
	if pull == "" {
		return ""
	}
	return pull + l.paths.comment + strconv.FormatInt(comment, 10)
}
