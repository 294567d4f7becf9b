package forge

import (
	"bytes"
	"cmp"
	"context"
	"encoding/json"
	"errors"
	"io"
	"math/rand/v2"
	"net/http"
	"net/url"
	"strings"
	"sync/atomic"
	"time"

	"github.com/weir-gitops/weir/status/forge/forgehttp"
)

const (
	// answerLimit bounds one answer, in bytes. A page holds the descriptions of a
	// hundred pull requests or as many comments, which strangers may make long.
	answerLimit = 64 << 20
	// requestTimeout bounds one request with its answer.
	requestTimeout = 30 * time.Second
	// tries is how often a read is tried. A write is tried once: its answer may be lost.
	tries = 3
	// longestWait bounds the wait between two tries. Who is asked to wait longer is
	// told so, and comes back by himself.
	longestWait = 10 * time.Second
)

// rest speaks JSON to a forge. The forges' own clients would do, if they knew
// conditional requests and read pages piece by piece.
type rest struct {
	kind Kind
	// api is the address that all paths are below, without a slash at its end.
	api    string
	http   *http.Client
	header http.Header
	// token is the one that was sent last, so that no error shows it.
	token *atomic.Pointer[string]
}

// ask is one request.
type ask struct {
	method, path string
	// address replaces the API's and the path.
	address string
	etag    string
	body    any
	need    need
}

// need says what a request is for, for who reads that it was refused.
type need struct {
	does  string // such as "read pull requests"
	grant string // what the token needs for it
	// thing is what is not there when the forge answers 404, such as "pull request 7".
	thing string
	// hidden says that the thing is not there for this token only: it is the
	// repository.
	hidden bool
}

// answer is what came beside the document.
type answer struct {
	same  bool // since the ETag that was sent
	etag  string
	more  bool // there is a next page
	total int  // of all pages, -1 if the forge does not say
}

func newRest(kind Kind, api, base *url.URL, scheme string, o ClientOptions) *rest {
	r := &rest{kind: kind, api: strings.TrimSuffix(api.String(), "/"), token: &atomic.Pointer[string]{}}
	token := o.Token
	if token != nil {
		token = func(ctx context.Context) (string, error) {
			t, err := o.Token(ctx)
			if err == nil {
				r.token.Store(&t)
			}
			return t, err
		}
	}
	r.http = forgehttp.NewClient(forgehttp.Options{Base: base, Scheme: scheme, Token: token, Transport: o.Transport, AnswerLimit: answerLimit})
	return r
}

// do makes a request, and a read again where that may help. decode reads the
// document; nil if there is none to read.
func (r *rest) do(ctx context.Context, q ask, decode func(io.Reader) error) (answer, error) {
	for try := 1; ; try++ {
		a, err := r.try(ctx, q, decode)
		var refusal *forgehttp.Error
		if err == nil || q.method != http.MethodGet || try == tries || !errors.As(err, &refusal) || !passes(refusal) {
			return a, err
		}
		wait := max(refusal.After, time.Duration(try*try)*time.Second/2)
		if refusal.After == 0 {
			wait += rand.N(wait / 2) //nolint:gosec // so that not all come back at once
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

// passes reports whether a read that failed so may succeed in a moment. Gitea says
// 500 for what is not there, which is why this has an end.
func passes(e *forgehttp.Error) bool {
	return e.Fault == forgehttp.FaultBusy || e.Status >= 500
}

func (r *rest) try(ctx context.Context, q ask, decode func(io.Reader) error) (answer, error) {
	ctx, cancel := context.WithTimeout(ctx, requestTimeout)
	defer cancel()
	req, err := r.request(ctx, q)
	if err != nil {
		return answer{}, r.fault(q, nil, nil, err)
	}
	resp, err := r.http.Do(req)
	if err != nil {
		var wrapped *url.Error
		if errors.As(err, &wrapped) {
			err = wrapped.Err // the address is said by who calls
		}
		return answer{}, r.fault(q, nil, nil, err)
	}
	defer func() {
		_, _ = io.Copy(io.Discard, io.LimitReader(resp.Body, 64<<10)) // so that the connection serves again
		_ = resp.Body.Close()                                         // it was only read
	}()
	switch {
	case resp.StatusCode == http.StatusNotModified && q.etag != "":
		return answer{same: true, etag: q.etag, total: -1}, nil
	case resp.StatusCode/100 != 2:
		said, _ := io.ReadAll(io.LimitReader(resp.Body, 64<<10)) // what there is of it
		return answer{}, r.fault(q, resp, said, nil)
	case decode != nil:
		if err := decode(resp.Body); err != nil {
			return answer{}, r.fault(q, resp, nil, errors.New("the answer is not whole, or not that of the API of "+string(r.kind)+"; is the forge's address right?"))
		}
	}
	return answer{etag: word(resp.Header.Get("ETag")), more: more(resp.Header), total: total(resp.Header)}, nil
}

func (r *rest) request(ctx context.Context, q ask) (*http.Request, error) {
	address := r.api + q.path
	if q.address != "" {
		address = q.address
	}
	var body io.Reader
	if q.body != nil {
		text, err := json.Marshal(q.body)
		if err != nil {
			return nil, err
		}
		body = bytes.NewReader(text)
	}
	req, err := http.NewRequestWithContext(ctx, q.method, address, body)
	if err != nil {
		return nil, err
	}
	req.Header.Set("Accept", "application/json")
	for k, v := range r.header {
		req.Header[k] = v
	}
	if q.body != nil {
		req.Header.Set("Content-Type", "application/json")
	}
	if q.etag != "" {
		req.Header.Set("If-None-Match", q.etag)
	}
	return req, nil
}

// fault makes an error of an answer, or of why there is none.
func (r *rest) fault(q ask, resp *http.Response, said []byte, err error) error {
	e := &forgehttp.Error{Forge: string(r.kind), Fault: forgehttp.FaultBusy, Err: err}
	if err != nil {
		e.Message, e.After = r.clean(err.Error()), forgehttp.LimitedFor(err)
	}
	if resp == nil {
		e.Message = q.need.does + ": " + e.Message
		return e
	}
	e.Status = resp.StatusCode
	if e.Status/100 == 2 {
		e.Message = q.need.does + ": " + e.Message
		return e
	}
	e.Fault, e.After = forgehttp.FaultOf(e.Status, resp.Header)
	text := r.clean(saidIn(said))
	if text == "" {
		text = strings.ToLower(http.StatusText(e.Status))
	}
	switch {
	case e.Status == http.StatusUnauthorized:
		e.Message = "the token is not accepted (" + text + "): it is wrong, expired or revoked"
	case e.Status == http.StatusForbidden && strings.Contains(strings.ToLower(text), "rate limit"):
		// GitHub does not always say how long its second limit holds.
		// https://docs.github.com/rest/using-the-rest-api/rate-limits-for-the-rest-api#exceeding-the-rate-limit
		e.Fault, e.After = forgehttp.FaultBusy, cmp.Or(e.After, time.Minute)
		e.Message = q.need.does + ": " + text
	case e.Fault == forgehttp.FaultDenied:
		e.Message = "the token may not " + q.need.does + " (" + text + "): it needs " + q.need.grant
	case e.Status == http.StatusNotFound && q.need.hidden:
		e.Fault = forgehttp.FaultDenied
		e.Message = q.need.thing + " is not found (" + text + "): the token must have access to it, and needs " + q.need.grant
	case e.Status == http.StatusNotFound:
		e.Message = q.need.thing + " is not found (" + text + ")"
	default:
		e.Message = q.need.does + ": " + text
	}
	return e
}

// clean makes a text fit for an error. A proxy may say the request back, token
// included.
func (r *rest) clean(text string) string {
	if token := r.token.Load(); token != nil && *token != "" {
		text = strings.ReplaceAll(text, *token, "[redacted]")
	}
	return forgehttp.Quote(text)
}

// saidIn is what an error document of any of the forges says. GitLab's message may
// be a text, a list or a mapping of fields; its errors of authentication have the
// form of OAuth. What is no such document is a proxy's page.
func saidIn(body []byte) string {
	var in struct {
		Message     json.RawMessage   `json:"message"`
		Error       json.RawMessage   `json:"error"`
		Description string            `json:"error_description"`
		Errors      []json.RawMessage `json:"errors"`
	}
	if json.Unmarshal(body, &in) != nil {
		return string(body)
	}
	var said []string
	for _, raw := range append([]json.RawMessage{in.Message, in.Error}, in.Errors...) {
		var plain string
		var field struct {
			Message string `json:"message"`
		}
		switch {
		case len(raw) == 0 || string(raw) == "null":
			continue
		case json.Unmarshal(raw, &plain) == nil:
		case json.Unmarshal(raw, &field) == nil && field.Message != "":
			plain = field.Message
		default:
			plain = string(raw)
		}
		said = append(said, plain)
	}
	if in.Description != "" {
		said = append(said, in.Description)
	}
	return strings.Join(said, ": ")
}

// into decodes one document.
func into[T any](v *T) func(io.Reader) error {
	return func(r io.Reader) error {
		*v = *new(T) // it may be the second try
		return json.NewDecoder(r).Decode(v)
	}
}

// each decodes a list, element by element: the fields that nobody reads of a page
// are never held all at once.
func each[T any](list *[]T) func(io.Reader) error {
	return func(r io.Reader) error {
		*list = (*list)[:0]
		dec := json.NewDecoder(r)
		if t, err := dec.Token(); err != nil || t != json.Delim('[') {
			return errors.Join(err, errors.New("not a list"))
		}
		for dec.More() {
			var v T
			if err := dec.Decode(&v); err != nil {
				return err
			}
			*list = append(*list, v)
		}
		_, err := dec.Token()
		return err
	}
}
