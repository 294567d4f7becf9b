package forge

import (
	"context"
	"crypto/rand"
	"errors"
	"fmt"
	"math/big"
	"net/http"
	"strings"
	"sync"
	"time"

	"github.com/weir-gitops/weir/status/forge/forgehttp"
)

const (
	// requestTimeout is the timeout of one request with its response.
	requestTimeout = 30 * time.Second
	// tries is the maximum number of attempts of a read. A write is tried only once, because it may have
	// been executed although its response was lost.
	tries = 3
	// longestWait is the maximum wait between two attempts. If the forge requests a longer wait, the caller
	// gets it in the error, and must retry by itself.
	longestWait = 10 * time.Second
)

// caller makes calls of a forge's library. It bounds and repeats them, and explains their errors.
type caller struct {
	profile Profile
	http    *http.Client
	// repository is the name of the repository.
	repository string

	mu   sync.Mutex
	self string
}

func newCaller(p Profile, o ClientOptions, transport forgehttp.Options) *caller {
	transport.Forge, transport.Token, transport.Transport = p.Label, o.Token, o.Transport
	return &caller{profile: p, http: forgehttp.NewClient(transport), repository: o.Repository}
}

// Profile returns the profile of the forge.
func (c *caller) Profile() Profile { return c.profile }

// aboutPull returns the need of a call about one pull request.
func (c *caller) aboutPull(does, grant string, number int64) need {
	return need{does: does, grant: grant, thing: fmt.Sprintf("%s %d of %s", c.profile.PullRequest, number, c.repository)}
}

// need describes the purpose and the permissions of a call, for the error if it is refused.
type need struct {
	does  string // such as "read pull requests"
	grant string // the permission of the token that it requires
	// thing names the missing object if the forge answers 404, such as "pull request 7". It is "" for the
	// repository, because then the token usually has no access to the repository.
	thing string
}

// answer contains the data about a response that is not in its document.
type answer struct {
	same  bool // unchanged since the ETag that was sent
	etag  string
	more  bool // there is a next page
	total int  // on all pages, -1 if the forge does not report it
}

// read makes a call that changes nothing. It repeats the call after temporary errors.
func (c *caller) read(ctx context.Context, n need, etag string, call func(context.Context) error) (answer, error) {
	for try := 1; ; try++ {
		a, err := c.once(ctx, n, etag, call)
		var refusal *forgehttp.Error
		if err == nil || try == tries || !errors.As(err, &refusal) || !passes(refusal) {
			return a, err
		}
		wait := max(refusal.After, time.Duration(try*try)*time.Second/2)
		if refusal.After == 0 {
			if more, err := rand.Int(rand.Reader, big.NewInt(int64(wait/2)+1)); err == nil { // so that not all callers retry at the same time
				wait += time.Duration(more.Int64())
			}
		}
		if wait > longestWait {
			return a, err
		}
		timer := time.NewTimer(wait)
		select {
		case <-timer.C:
		case <-ctx.Done():
			timer.Stop()
			return a, err
		}
	}
}

// passes reports whether a read that failed with e may succeed in a moment. Gitea also answers 500 for
// missing objects, so the number of attempts is limited.
func passes(e *forgehttp.Error) bool {
	return e.Fault == forgehttp.FaultBusy || e.Status >= 500
}

// write makes a call once, without retries.
func (c *caller) write(ctx context.Context, n need, call func(context.Context) error) error {
	_, err := c.once(ctx, n, "", call)
	return err
}

func (c *caller) once(ctx context.Context, n need, etag string, call func(context.Context) error) (answer, error) {
	ctx, cancel := context.WithTimeout(ctx, requestTimeout)
	defer cancel()
	x := &forgehttp.Exchange{ETag: etag}
	err := call(forgehttp.With(ctx, x))
	switch {
	case x.Same:
		return answer{same: true, etag: etag, total: -1}, nil
	case err != nil:
		return answer{}, c.explain(n, x.Status, err)
	}
	return answer{etag: word(x.Header.Get("ETag")), more: more(x.Header), total: total(x.Header)}, nil
}

// explain adds the failed action and the remedy to an error. An error that is not from the transport means
// that the library could not decode the response.
func (c *caller) explain(n need, status int, err error) error {
	var refusal *forgehttp.Error
	if !errors.As(err, &refusal) {
		e := &forgehttp.Error{Forge: c.profile.Label, Fault: forgehttp.FaultBusy, Status: status, Message: n.does + ": the answer is incomplete, or not from the API of " + c.profile.Label + "; is the forge's address right?"}
		if errors.Is(err, context.Canceled) || errors.Is(err, context.DeadlineExceeded) {
			e.Message, e.Err = n.does+": "+err.Error(), err
		}
		return e
	}
	e := *refusal
	text := e.Message
	switch {
	case e.Status == http.StatusUnauthorized:
		e.Message = "the token is not accepted (" + text + "): it is wrong, expired or revoked"
	case e.Fault == forgehttp.FaultDenied:
		e.Message = "the token may not " + n.does + " (" + text + "): it needs " + n.grant
	case e.Status == http.StatusNotFound && (n.thing == "" && !strings.Contains(strings.ToLower(text), "commit") || strings.Contains(text, "Project Not Found")):
		e.Fault = forgehttp.FaultDenied
		e.Message = "the " + c.profile.Repository + " " + c.repository + " is not found (" + text + "): the token must have access to it, and needs " + n.grant
	case e.Status == http.StatusNotFound && n.thing != "":
		e.Message = n.thing + " is not found (" + text + ")"
	default:
		e.Message = n.does + ": " + text
	}
	return &e
}

// refused returns the refusal with a status, nil for any other error.
func refused(err error, status int) *forgehttp.Error {
	var e *forgehttp.Error
	if errors.As(err, &e) && e.Status == status {
		return e
	}
	return nil
}

// commentRefusal explains refusals that only comments get, such as for a locked conversation.
func commentRefusal(err error) error {
	var e *forgehttp.Error
	if errors.As(err, &e) && e.Status/100 == 4 && e.Status != http.StatusTooManyRequests && strings.Contains(strings.ToLower(e.Message), "locked") {
		return &forgehttp.Error{Forge: e.Forge, Fault: forgehttp.FaultRefused, Status: e.Status, Err: err,
			Message: "the conversation of the pull request is locked: unlock it to see the plan there; it is on weir's page meanwhile"}
	}
	return err
}

// TooLong reports whether a forge refused a text because of its length. With Gitea, the database returns
// that error, and Gitea answers 500.
func TooLong(err error) bool {
	var e *forgehttp.Error
	if !errors.As(err, &e) {
		return false
	}
	return e.Status == http.StatusRequestEntityTooLarge || e.Status >= 400 && strings.Contains(strings.ToLower(e.Message), "too long")
}

// Gone reports whether a forge answered that an object does not exist.
func Gone(err error) bool {
	return refused(err, http.StatusNotFound) != nil || refused(err, http.StatusGone) != nil
}

// whoAmI returns the login of the token. It requests the login only until it is known.
func (c *caller) whoAmI(ctx context.Context, grant string, ask func(context.Context) (string, error)) (string, error) {
	c.mu.Lock()
	known := c.self
	c.mu.Unlock()
	if known != "" {
		return known, nil
	}
	var name string
	_, err := c.read(ctx, need{does: "ask who it is", grant: grant, thing: "the token's user"}, "", func(ctx context.Context) (err error) {
		name, err = ask(ctx)
		return err
	})
	if err != nil {
		return "", err
	}
	if name == "" {
		return "", &forgehttp.Error{Forge: c.profile.Label, Fault: forgehttp.FaultDenied, Message: "the forge does not say whose token it is: it needs " + grant}
	}
	c.mu.Lock()
	defer c.mu.Unlock()
	c.self = name
	return name, nil
}
