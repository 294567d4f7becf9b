package commands

import (
	"context"
	"encoding/json"
	"errors"
	"log/slog"
	"net/http"
	"net/http/httptest"
	"strings"
	"testing"

	"github.com/weir-gitops/weir/reconciler/gates"
)

// hands does what it is told, or fails.
type hands struct {
	err  error
	seen []Move
	// asked are the targets whose owners were waited for.
	asked []string
}

func (c *hands) Drain(_ context.Context, m Move) (Moved, error) {
	c.seen = append(c.seen, m)
	return Moved{Member: "two", Undo: m.Undo, Followed: !m.Undo, Left: 1}, c.err
}

func (c *hands) Take(_ context.Context, m Move) (Moved, error) {
	c.seen = append(c.seen, m)
	return Moved{Member: "one", Scope: "scope/aws/1/r"}, c.err
}

func (c *hands) Followers(_ context.Context, targets []string) ([]string, bool) {
	c.asked = append(c.asked, strings.Join(targets, ","))
	return []string{"two"}, c.err == nil
}

func TestWorkIsMoved(t *testing.T) {
	var members hands
	var done []Action
	who := ""
	handler := func(c Members) http.Handler {
		return Handler(Options{
			Members: c, Logger: slog.New(slog.DiscardHandler), Redact: func(s string) string { return s },
			Who: func(*http.Request) string { return who }, Done: func(a Action) { done = append(done, a) },
		}, http.NotFoundHandler())
	}
	post := func(c Members, path, body string) (int, string) {
		r := httptest.NewRequest(http.MethodPost, "http://127.0.0.1"+path, strings.NewReader(body))
		r.RemoteAddr = "127.0.0.1:1"
		r.Header.Set(Header, "1")
		r.Header.Set("Content-Type", jsonType)
		rec := httptest.NewRecorder()
		handler(c).ServeHTTP(rec, r)
		return rec.Code, rec.Body.String()
	}

	for _, tc := range []struct{ path, body, text string }{
		{DrainPath, `{"member":"two","by":"ann"}`, "ann drained two"},
		{DrainPath, `{"undo":true}`, "somebody let two take work again"},
		{TakePath, `{"scope":"prod","by":"ann"}`, "ann gave scope/aws/1/r to one"},
	} {
		done = nil
		code, body := post(&members, tc.path, tc.body)
		var out Moved
		if err := json.Unmarshal([]byte(body), &out); err != nil || code != http.StatusOK || out.Member == "" {
			t.Errorf("%s: %d %s", tc.body, code, body)
		}
		if len(done) != 1 || done[0].Text != tc.text {
			t.Errorf("%s: %+v, want %q", tc.body, done, tc.text)
		}
	}

	// A known caller's name counts, not the name in the request.
	who = "bob"
	if _, body := post(&members, TakePath, `{"scope":"prod","by":"ann"}`); members.seen[len(members.seen)-1].By != "bob" {
		t.Errorf("by %+v: %s", members.seen[len(members.seen)-1], body)
	}
	who = ""

	// Nothing is reported done that was not.
	done = nil
	for name, tc := range map[string]struct {
		members Members
		body    string
		code    int
		want    string
	}{
		"alone":       {nil, `{}`, http.StatusBadRequest, "does not share its work"},
		"a fault":     {&hands{err: &gates.Fault{Message: "no member is called x", Hint: "weir members"}}, `{}`, http.StatusBadRequest, "no member is called x"},
		"no engine":   {&hands{err: errors.New("secret detail")}, `{}`, http.StatusInternalServerError, "the command failed"},
		"another key": {&hands{}, `{"scopes":"x"}`, http.StatusBadRequest, "cannot be read"},
	} {
		for _, path := range []string{DrainPath, TakePath} {
			code, body := post(tc.members, path, tc.body)
			if code != tc.code || !strings.Contains(body, tc.want) || strings.Contains(body, "secret") {
				t.Errorf("%s: %d %s", name, code, body)
			}
		}
	}
	if len(done) > 0 {
		t.Errorf("done: %+v", done)
	}
	r := httptest.NewRequest(http.MethodPost, "http://127.0.0.1"+DrainPath, strings.NewReader(`{}`))
	r.RemoteAddr = "10.0.0.7:1"
	r.Header.Set(Header, "1")
	r.Header.Set("Content-Type", jsonType)
	rec := httptest.NewRecorder()
	if handler(&members).ServeHTTP(rec, r); rec.Code != http.StatusForbidden {
		t.Errorf("from elsewhere: %d", rec.Code)
	}
}

// A daemon among several says which owners have read a command, or that it is stored for
// them; one that is alone heeds it.
func TestWhoHeedsACommandAmongSeveral(t *testing.T) {
	for name, tc := range map[string]struct {
		members Members
		by      string
		stored  bool
	}{
		"alone": {}, "several": {members: &hands{}, by: "two"}, "not all": {members: &hands{err: errors.New("no")}, by: "two", stored: true},
	} {
		b, _ := newBook(t)
		var said string
		h := Handler(Options{
			Book: b, Daemon: known{"prod"}, Members: tc.members, Logger: slog.New(slog.DiscardHandler), Redact: func(s string) string { return s },
			Say: func(_ http.ResponseWriter, text string) { said = text }, Who: func(r *http.Request) string { return r.Header.Get("X-Who") },
		}, http.NotFoundHandler())
		for path, body := range map[string]string{
			SuspendPath: `{"target":"prod","reason":"night","for":"1h"}`, ResumePath: `{"target":"prod"}`, ReconcilePath: `{"targets":["prod"]}`,
		} {
			r := httptest.NewRequest(http.MethodPost, "http://127.0.0.1"+path, strings.NewReader(body))
			r.RemoteAddr = "127.0.0.1:1"
			r.Header.Set(Header, "1")
			r.Header.Set("Content-Type", jsonType)
			rec := httptest.NewRecorder()
			h.ServeHTTP(rec, r)
			var out gates.Answer
			if err := json.Unmarshal(rec.Body.Bytes(), &out); err != nil || rec.Code != http.StatusOK || out.Stored != tc.stored || strings.Join(out.HeededBy, ",") != tc.by {
				t.Errorf("%s, %s: %d %s", name, path, rec.Code, rec.Body)
			}
		}
		if c, several := tc.members.(*hands); several && strings.Join(c.asked, " ") != "prod prod prod" {
			t.Errorf("%s: waited for the owners of %q", name, c.asked)
		}
		r := httptest.NewRequest(http.MethodPost, "http://127.0.0.1"+formPrefix+"suspend", strings.NewReader("target=prod&reason=night&for=1h"))
		r.Header.Set("Content-Type", "application/x-www-form-urlencoded")
		r.Header.Set("X-Who", "ann")
		h.ServeHTTP(httptest.NewRecorder(), r)
		if strings.Contains(said, "Members that have read it: two") != (tc.by != "") || strings.Contains(said, "stored") != tc.stored || !strings.Contains(said, "ann suspended prod") {
			t.Errorf("%s: the page says %q", name, said)
		}
	}

	// Nobody is waited for where it is about no plan that is known.
	var c hands
	b, _ := newBook(t)
	out, _, err := handler{Options{Book: b, Daemon: known{}, Members: &c, Logger: slog.New(slog.DiscardHandler), Redact: func(s string) string { return s }, Done: func(Action) {}}}.
		do(t.Context(), "approve", gates.Approve, gates.Request{Digest: strings.Repeat("a", 64)})
	if err != nil || !out.Stored || len(c.asked) > 0 {
		t.Errorf("%+v, %v: %q", out, err, c.asked)
	}
}
