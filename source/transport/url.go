package transport

import (
	"crypto/sha256"
	"encoding/hex"
	"net"
	"net/url"
	"path"
	"path/filepath"
	"strings"

	"github.com/weir-gitops/weir/render/lazyregexp"
	"github.com/weir-gitops/weir/source/fault"
)

// Location is a parsed URL: a local path, or an address for HTTP or SSH.
type Location struct {
	Local string
	http  *url.URL
	ssh   *sshLocation
}

// Scheme is a way to connect to a repository.
type Scheme string

// Supported schemes.
const (
	SchemeLocal Scheme = "local"
	SchemeHTTP  Scheme = "http"
	SchemeSSH   Scheme = "ssh"
)

// SchemeOf returns the scheme of a URL. The error contains no credentials.
func SchemeOf(raw string) (Scheme, error) {
	switch loc, err := Parse(raw); {
	case err != nil:
		return "", err
	case loc.ssh != nil:
		return SchemeSSH, nil
	case loc.http != nil:
		return SchemeHTTP, nil
	default:
		return SchemeLocal, nil
	}
}

// defaultSSHUser is the user name that all forges use for Git over SSH.
const defaultSSHUser = "git"

var transportHelper = lazyregexp.New(`^[A-Za-z0-9][A-Za-z0-9+.-]*::`)

// Parse parses the forms of a repository's address. It refuses unsupported schemes, and everything that could
// turn a URL into an option or a command.
func Parse(raw string) (Location, error) {
	switch {
	case raw == "":
		return Location{}, fault.New(fault.RefusedURL, "the url is empty")
	case strings.HasPrefix(raw, "-"):
		return Location{}, fault.New(fault.RefusedURL, "a url must not start with a dash")
	case strings.ContainsFunc(raw, func(r rune) bool { return r < 0x20 || r == 0x7f }):
		return Location{}, fault.New(fault.RefusedURL, "the url has a control character")
	case transportHelper.MatchString(raw):
		return Location{}, fault.New(fault.RefusedURL, "transport helpers (%s) are not used; give an https:// url or a path", transportHelper.FindString(raw))
	}
	if strings.Contains(raw, "://") {
		return parseAbsolute(raw)
	}
	if host, p, ok := splitSCP(raw); ok {
		user, _, named := strings.Cut(raw, "@")
		if !named || strings.ContainsAny(user, ":/[") {
			user = ""
		}
		return sshAt(user, host, "", p)
	}
	abs, err := filepath.Abs(raw)
	if err != nil {
		return Location{}, fault.New(fault.RefusedURL, "the path %s has no absolute form: %v", raw, err)
	}
	return Location{Local: abs}, nil
}

// parseAbsolute parses a URL with a scheme. It refuses URLs with credentials, because messages show URLs.
func parseAbsolute(raw string) (Location, error) {
	u, err := url.Parse(raw)
	if err != nil {
		// The parser's message contains the URL with its credentials.
		return Location{}, fault.New(fault.RefusedURL, "the url cannot be parsed")
	}
	switch u.Scheme {
	case "http", "https":
	case "file":
		if u.Host != "" && u.Host != "localhost" {
			return Location{}, fault.New(fault.RefusedURL, "a file:// url must not name another host (%s); write file:///path", u.Hostname())
		}
		if u.RawQuery != "" || u.Fragment != "" || u.Path == "" {
			return Location{}, fault.New(fault.RefusedURL, "a file:// url has only a path")
		}
		return Location{Local: filepath.Clean(filepath.FromSlash(u.Path))}, nil
	case "ssh", "git+ssh", "ssh+git":
		return parseSSH(u)
	case "git":
		return Location{}, fault.New(fault.Unsupported, "git:// has no encryption and does not identify the server; give an https:// or ssh:// url")
	default:
		return Location{}, fault.New(fault.RefusedURL, "%s:// is not a way to read Git here; give an https:// or ssh:// url or a path", fault.Plain(u.Scheme))
	}
	if u.User != nil {
		return Location{}, fault.New(fault.RefusedURL, "%s: the url contains credentials; give them as auth.tokenFile, or auth.username and auth.passwordFile", displayURL(u))
	}
	if u.Hostname() == "" || strings.Trim(u.Path, "/") == "" {
		return Location{}, fault.New(fault.RefusedURL, "%s: the url needs a host and a path", displayURL(u))
	}
	if u.RawQuery != "" || u.Fragment != "" {
		return Location{}, fault.New(fault.RefusedURL, "%s: the url of a repository has no query and no fragment", displayURL(u))
	}
	return Location{http: u}, nil
}

func parseSSH(u *url.URL) (Location, error) {
	shown := displayURL(u)
	if _, secret := u.User.Password(); secret {
		return Location{}, fault.New(fault.RefusedURL, "%s: the url contains a password; over SSH give auth.sshKeyFile", shown)
	}
	if u.RawQuery != "" || u.Fragment != "" {
		return Location{}, fault.New(fault.RefusedURL, "%s: the url of a repository has no query and no fragment", shown)
	}
	p := u.Path
	if strings.HasPrefix(p, "/~") {
		p = p[1:] // the home directory of a user on the server, as in Git
	}
	return sshAt(u.User.Username(), u.Hostname(), u.Port(), p)
}

// sshAt checks the parts that are passed to the server's shell and to the dialer.
func sshAt(user, host, port, p string) (Location, error) {
	switch {
	case host == "" || strings.Trim(p, "/") == "":
		return Location{}, fault.New(fault.RefusedURL, "the ssh url needs a host and a path, as in ssh://git@host/owner/repository.git")
	case strings.HasPrefix(host, "-") || strings.ContainsAny(host, " \t"):
		return Location{}, fault.New(fault.RefusedURL, "%q is not a valid name for a host", fault.Plain(host))
	case strings.HasPrefix(user, "-") || strings.HasPrefix(p, "-"):
		return Location{}, fault.New(fault.RefusedURL, "user and path of an ssh url must not start with a dash")
	}
	if user == "" {
		user = defaultSSHUser
	}
	if port == "" {
		port = "22"
	}
	return Location{ssh: &sshLocation{user: user, addr: net.JoinHostPort(host, port), path: p}}, nil
}

// displayURL returns u without user, password, query and fragment.
func displayURL(u *url.URL) string {
	return fault.Plain((&url.URL{Scheme: u.Scheme, Host: u.Host, Path: u.Path}).String())
}

// splitSCP splits user@host:path into its parts. As in Git, a colon before the first slash marks this form.
func splitSCP(raw string) (host, p string, ok bool) {
	host, p, ok = strings.Cut(raw, ":")
	if before, after, found := strings.Cut(raw, "]:"); found && !strings.Contains(before, "/") {
		host, p, ok = strings.Replace(before, "[", "", 1), after, true // an IPv6 address
	}
	if !ok || host == "" || strings.Contains(host, "/") {
		return "", "", false
	}
	return host[strings.LastIndex(host, "@")+1:], p, true
}

// ID returns the identity of a repository, independent of the form of its address. It is the first 12 hex
// digits of SHA-256 of its URL without scheme, user, port and ".git", and with the host in lower case. For a
// local path it uses the absolute path.
func ID(raw string) string {
	sum := sha256.Sum256([]byte(identity(raw)))
	return hex.EncodeToString(sum[:])[:12]
}

// identity returns the host and path of a repository in the form that ID hashes.
func identity(raw string) string {
	var host, p string
	u, err := url.Parse(raw)
	switch scpHost, scpPath, isSCP := splitSCP(raw); {
	case strings.Contains(raw, "://") && err == nil && u.Scheme == "file":
		p = u.Path
	case strings.Contains(raw, "://") && err == nil:
		host, p = u.Hostname(), u.Path
	case strings.Contains(raw, "://"):
		// Not a working URL. Use the text without the part that may be a secret.
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
