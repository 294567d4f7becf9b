package source

import (
	"crypto/sha256"
	"encoding/hex"
	"net/url"
	"path"
	"path/filepath"
	"regexp"
	"strings"
)

// location is a parsed URL: either a path on this machine, or an HTTP address.
type location struct {
	local string
	http  *url.URL
}

var transportHelper = regexp.MustCompile(`^[A-Za-z0-9][A-Za-z0-9+.-]*::`)

// parseURL tells the forms of a repository's address apart. It refuses what is
// not carried, and what would let a URL become an option or a command.
func parseURL(raw string) (location, error) {
	switch {
	case raw == "":
		return location{}, faultf(RefusedURL, "the url is empty")
	case strings.HasPrefix(raw, "-"):
		return location{}, faultf(RefusedURL, "a url must not start with a dash")
	case strings.ContainsFunc(raw, func(r rune) bool { return r < 0x20 || r == 0x7f }):
		return location{}, faultf(RefusedURL, "the url holds a control character")
	case transportHelper.MatchString(raw):
		return location{}, faultf(RefusedURL, "transport helpers (%s) are not used; give an https:// url or a path", transportHelper.FindString(raw))
	}
	if strings.Contains(raw, "://") {
		return parseAbsolute(raw)
	}
	if _, _, ok := splitSCP(raw); ok {
		return location{}, faultf(Unsupported, "the ssh form host:path is not supported yet; give an https:// url")
	}
	abs, err := filepath.Abs(raw)
	if err != nil {
		return location{}, faultf(RefusedURL, "the path %s has no absolute form: %v", raw, err)
	}
	return location{local: abs}, nil
}

func parseAbsolute(raw string) (location, error) {
	u, err := url.Parse(raw)
	if err != nil {
		// The parser's own text repeats the url, credentials and all.
		return location{}, faultf(RefusedURL, "the url cannot be parsed")
	}
	switch u.Scheme {
	case "http", "https":
	case "file":
		if u.Host != "" && u.Host != "localhost" {
			return location{}, faultf(RefusedURL, "a file:// url must not name another host (%s); write file:///path", u.Hostname())
		}
		if u.RawQuery != "" || u.Fragment != "" || u.Path == "" {
			return location{}, faultf(RefusedURL, "a file:// url holds a path and nothing else")
		}
		return location{local: filepath.Clean(filepath.FromSlash(u.Path))}, nil
	case "ssh", "git+ssh", "ssh+git", "git":
		return location{}, faultf(Unsupported, "%s:// is not supported yet; give an https:// url", u.Scheme)
	default:
		return location{}, faultf(RefusedURL, "%s:// is not a way to read Git here; give an https:// url or a path", plain(u.Scheme))
	}
	if u.User != nil {
		return location{}, faultf(RefusedURL, "%s: the url carries credentials; give them as auth.tokenFile, or auth.username and auth.passwordFile", displayURL(u))
	}
	if u.Hostname() == "" || strings.Trim(u.Path, "/") == "" {
		return location{}, faultf(RefusedURL, "%s: the url needs a host and a path", displayURL(u))
	}
	if u.RawQuery != "" || u.Fragment != "" {
		return location{}, faultf(RefusedURL, "%s: the url of a repository has no query and no fragment", displayURL(u))
	}
	return location{http: u}, nil
}

// displayURL is u as it may be shown: without user, password, query, fragment.
func displayURL(u *url.URL) string {
	return plain((&url.URL{Scheme: u.Scheme, Host: u.Host, Path: u.Path}).String())
}

// splitSCP takes apart user@host:path. As in Git, a colon before the first slash
// makes it one.
func splitSCP(raw string) (host, p string, ok bool) {
	host, p, ok = strings.Cut(raw, ":")
	if before, after, found := strings.Cut(raw, "]:"); found && !strings.Contains(before, "/") {
		host, p, ok = strings.Replace(before, "[", "", 1), after, true // An IPv6 address.
	}
	if !ok || host == "" || strings.Contains(host, "/") {
		return "", "", false
	}
	return host[strings.LastIndex(host, "@")+1:], p, true
}

// ID is the identity of a repository, whichever way it is addressed: the first
// 12 hex digits of SHA-256 over its URL without scheme, user, port and ".git",
// the host in lower case. A local path counts by its absolute form.
func ID(raw string) string {
	sum := sha256.Sum256([]byte(identity(raw)))
	return hex.EncodeToString(sum[:])[:12]
}

func identity(raw string) string {
	var host, p string
	u, err := url.Parse(raw)
	switch scpHost, scpPath, isSCP := splitSCP(raw); {
	case strings.Contains(raw, "://") && err == nil && u.Scheme == "file":
		p = u.Path
	case strings.Contains(raw, "://") && err == nil:
		host, p = u.Hostname(), u.Path
	case strings.Contains(raw, "://"):
		// Not a URL that works; take the text without what may be a secret.
		_, rest, _ := strings.Cut(raw, "://")
		host, p, _ = strings.Cut(rest, "/")
		host = host[strings.LastIndex(host, "@")+1:]
	case isSCP:
		host, p = scpHost, scpPath
	default:
		p = raw
		if abs, err := filepath.Abs(raw); err == nil {
			p = filepath.ToSlash(abs)
		}
	}
	p = strings.TrimSuffix(path.Clean("/"+p), ".git")
	if len(p) > 1 {
		p = strings.TrimSuffix(p, "/")
	}
	return strings.ToLower(host) + p
}
