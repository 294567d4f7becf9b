package forge

import (
	"net/url"
	"strconv"
	"strings"

	"github.com/weir-gitops/weir/render/diag"
	"github.com/weir-gitops/weir/render/lazyregexp"
)

// paths contains the path segments that a forge puts between a repository's address and a hash, path, line,
// or number, to form the address of a page.
type paths struct{ commit, file, line, pull, comment string }

// Links builds the web addresses of commits, files and pull requests of one repository. The zero value
// builds none.
type Links struct {
	base  string
	paths paths
}

// NewLinks returns the links of a repository. address is its address for Git or for a browser. If kind is
// empty, it must be recognizable from the host name, because a guess would produce broken links.
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

// profileByHost returns the profile for a recognizable host name, such as gitlab.example.com.
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

// LinksBeside returns the links of the repository that contains a pull request, based on the web address of
// the pull request. It builds none if the address does not have the forge's form.
func (p Profile) LinksBeside(pull string) Links {
	i := strings.LastIndex(pull, p.paths.pull)
	if i < 0 || p.paths.pull == "" || strings.ContainsAny(pull, "?#") {
		return Links{}
	}
	return Links{base: pull[:i], paths: p.paths}
}

// hostAndPath returns the host and the path of a repository's pages, empty if the address has no host. It
// drops an SSH port, because that does not serve pages.
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

// Repository returns the address of the repository, empty if none exists.
func (l Links) Repository() string { return l.base }

var hashForm = lazyregexp.New(`^[0-9a-f]{7,64}$`)

// Commit returns the address of a commit.
func (l Links) Commit(sha string) string {
	if l.base == "" || !hashForm.MatchString(sha) {
		return ""
	}
	return l.base + l.paths.commit + sha
}

// File returns the address of a line of a file at a commit.
func (l Links) File(sha string, at diag.Position) string {
	if l.base == "" || !hashForm.MatchString(sha) || !at.Known() {
		return ""
	}
	parts := strings.Split(at.File, "/")
	for i, p := range parts {
		if p == "" || p == "." || p == ".." {
			return "" // a browser would leave the repository with such a path
		}
		parts[i] = url.PathEscape(p)
	}
	out := l.base + l.paths.file + sha + "/" + strings.Join(parts, "/")
	if at.Line > 0 {
		out += l.paths.line + strconv.Itoa(at.Line)
	}
	return out
}

// Pull returns the address of a pull request.
func (l Links) Pull(number int64) string {
	if l.base == "" || number < 1 {
		return ""
	}
	return l.base + l.paths.pull + strconv.FormatInt(number, 10)
}

// Comment returns the address of a comment on a pull request.
func (l Links) Comment(number, comment int64) string {
	pull := l.Pull(number)
	if pull == "" {
		return ""
	}
	return pull + l.paths.comment + strconv.FormatInt(comment, 10)
}
