// Package fault describes why a source returns no snapshot. Each cause has a Reason, which is stable and
// appears in metrics and the API, and a text that contains no raw output of a server. Packages below source
// return an Error or an ObjectError. source adds its name and advice, and returns an UnavailableError.
//
// The error of an unreadable object never wraps fs.ErrNotExist, because a missing pack must not look like a
// missing file. A missing file would mean that Git wants fewer resources. A lack of file descriptors or
// memory is not damage either: it is temporary, and the mirror is not recreated for it.
package fault

import (
	"errors"
	"fmt"
	"strings"
	"syscall"
	"unicode"

	"github.com/go-git/go-git/v5/plumbing"
)

// Reason is the reason why a source returns no snapshot.
type Reason string

// Reasons. They are stable, because metrics and the API contain them.
const (
	Unreachable     Reason = "unreachable"
	AuthFailed      Reason = "auth-failed"
	NotFound        Reason = "not-found"
	MissingRef      Reason = "missing-ref"
	EmptyRepository Reason = "empty-repository"
	Corrupt         Reason = "corrupt"
	Timeout         Reason = "timeout"
	RefusedURL      Reason = "refused-url"
	Unsupported     Reason = "unsupported"
	// UntrustedHost means that the host key of an SSH server is unknown or has changed.
	UntrustedHost Reason = "untrusted-host"
	// Unverified means that the revision does not have the required signature.
	Unverified Reason = "unverified"
	// Storage means that the mirror could not be written.
	Storage Reason = "storage"
	// Exhausted means that the process or the machine had no file descriptors or memory left. The state of
	// the object or file is then unknown.
	Exhausted Reason = "exhausted"
)

// UnavailableError means that a source currently returns no snapshot. Its text has the reason and what to do,
// and no credentials.
type UnavailableError struct {
	Source string
	Reason Reason
	// Revision is the refused commit, if Reason is Unverified or if the fault is in a single commit.
	// Otherwise it is empty.
	Revision string
	Err      error

	// Wasted is the number of bytes that were received but not used.
	Wasted int64
}

// Error returns the message, with advice at its end.
func (e *UnavailableError) Error() string {
	text := fmt.Sprintf("read source %s: %s: %v", e.Source, e.Reason, e.Err)
	if a := e.Reason.advice(); a != "" {
		text += "; " + a
	}
	return text
}

// Unwrap returns the cause.
func (e *UnavailableError) Unwrap() error { return e.Err }

// advice tells the user what to do about the reason, or returns "" if the error itself says it.
func (r Reason) advice() string {
	switch r {
	case Unreachable:
		return "check the url, the network and the proxy; it is tried again at each interval"
	case AuthFailed:
		return "check the source's auth, and that it may read this repository"
	case NotFound:
		return "check the url; for a private repository, forges answer this too when credentials are missing"
	case EmptyRepository:
		return "push a first commit"
	case Corrupt:
		return "a mirror is made again at the next attempt; a repository on this machine needs `git fsck`"
	case Timeout:
		return "it is tried again at each interval"
	case Unverified:
		return "what was applied last stays; sign the commit or tag with an allowed key and push it, or add the signer to verify"
	case Storage:
		return "check space and permissions of the state directory"
	case Exhausted:
		return "raise the limit of open files (LimitNOFILE of the service, ulimit -n); nothing was changed, and it is tried again at each interval"
	default:
		return ""
	}
}

// Error is a cause with its reason. It does not have the name of the source yet.
type Error struct {
	Reason   Reason
	Revision string
	Text     string
	Err      error // kept for errors.Is; its text is not shown
}

func (f *Error) Error() string { return f.Text }
func (f *Error) Unwrap() error { return f.Err }

func New(r Reason, format string, args ...any) *Error {
	return &Error{Reason: r, Text: fmt.Sprintf(format, args...)}
}

// Unread returns the fault of an object that could not be read. The reason is damage, unless err shows that
// the machine lacked resources to read it.
func Unread(err error, format string, args ...any) *Error {
	f := New(Corrupt, format+": %v", append(args, err)...)
	if Scarce(err) {
		f.Reason = Exhausted
	}
	return f
}

// Scarce reports whether err is a temporary lack of resources, which says nothing about a file.
func Scarce(err error) bool {
	for _, scarce := range []syscall.Errno{syscall.EMFILE, syscall.ENFILE, syscall.ENOMEM, syscall.EAGAIN, syscall.ENOBUFS} {
		if errors.Is(err, scarce) {
			return true
		}
	}
	return false
}

// Object returns the error of an object that could not be read because of err.
func Object(h plumbing.Hash, text string, err error) error {
	if Scarce(err) {
		return Unread(err, "read object %s", h)
	}
	return &ObjectError{Hash: h, Text: fmt.Sprintf("%s: %v", text, err)}
}

// Unavailable converts err to the form that leaves the package.
func Unavailable(source string, err error) *UnavailableError {
	u := &UnavailableError{Source: source, Reason: ReasonOf(err), Err: err}
	var f *Error
	if errors.As(err, &f) {
		u.Revision = f.Revision
	}
	return u
}

// ReasonOf returns the reason of an error. An error without a reason comes from failed access to files.
func ReasonOf(err error) Reason {
	var f *Error
	var oe *ObjectError
	switch {
	case errors.As(err, &f):
		return f.Reason
	case errors.As(err, &oe):
		return Corrupt
	case Scarce(err):
		return Exhausted
	default:
		return Storage
	}
}

// ObjectError means that an object could not be read. It never wraps an error of the file system, because a
// missing pack must not look like a missing path.
type ObjectError struct {
	Hash plumbing.Hash
	Text string
	// Missing means that the object is absent, and WrongType that it is intact but has another type. If
	// neither is set, it is damaged.
	Missing, WrongType bool
	// Malformed means that the object is intact, but that Git would not create such an object.
	Malformed bool
}

func (e *ObjectError) Error() string {
	return fmt.Sprintf("read object %s: %s", e.Hash, e.Text)
}

// Plain makes foreign text suitable for a log line: printable, one line, short.
func Plain(s string) string {
	s = strings.Map(func(r rune) rune {
		if !unicode.IsPrint(r) {
			return ' '
		}
		return r
	}, strings.ToValidUTF8(s, "?"))
	s = strings.Join(strings.Fields(s), " ")
	if r := []rune(s); len(r) > 300 {
		s = string(r[:300]) + "…"
	}
	return s
}
