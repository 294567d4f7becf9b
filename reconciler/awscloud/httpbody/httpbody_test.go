package httpbody_test

import (
	"errors"
	"io"
	"net/http"
	"strings"
	"testing"

	"github.com/weir-gitops/weir/reconciler/awscloud/httpbody"
)

// closing is like the SDK's body: once closed, its WriteTo fails.
type closing struct {
	*strings.Reader
	closed bool
}

func (c *closing) Close() error { c.closed = true; return nil }

func (c *closing) WriteTo(w io.Writer) (int64, error) {
	if c.closed {
		return 0, io.EOF
	}
	return c.Reader.WriteTo(w)
}

type do func(*http.Request) (*http.Response, error)

func (f do) Do(r *http.Request) (*http.Response, error) { return f(r) }

func TestClosedBodyEndsQuietly(t *testing.T) {
	errNext := errors.New("seen")
	body := &closing{Reader: strings.NewReader("Action=DescribeImages")}
	r, err := http.NewRequest("POST", "http://127.0.0.1/", body)
	if err != nil {
		t.Fatal(err)
	}
	_, err = httpbody.Client{Next: do(func(sent *http.Request) (*http.Response, error) {
		start := make([]byte, len("Action="))
		if _, err := io.ReadFull(sent.Body, start); err != nil || string(start) != "Action=" {
			t.Errorf("read %q: %v", start, err)
		}
		if n, err := io.Copy(io.Discard, sent.Body); err != nil || n != int64(len("DescribeImages")) {
			t.Errorf("the rest has %d bytes: %v", n, err)
		}
		if err := sent.Body.Close(); err != nil || !body.closed {
			t.Errorf("closing does not reach the body: %v", err)
		}
		if _, err := io.Copy(io.Discard, sent.Body); err != nil {
			t.Errorf("looking for the end after that: %v", err)
		}
		return nil, errNext
	})}.Do(r)
	if !errors.Is(err, errNext) || r.Body != io.ReadCloser(body) {
		t.Errorf("the answer is lost (%v) or the caller's request is not its own any more", err)
	}

	r.Body = http.NoBody
	_, _ = httpbody.Client{Next: do(func(sent *http.Request) (*http.Response, error) {
		if sent.Body != http.NoBody {
			t.Error("an empty body must stay known as empty: net/http sends Content-Length: 0 for it")
		}
		return nil, errNext
	})}.Do(r)
}
