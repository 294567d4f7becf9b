package forgehttp

import (
	"context"
	"errors"
	"io"
	"net/http"
	"net/http/httptest"
	"net/url"
	"strconv"
	"strings"
	"testing"
	"time"
	"unicode/utf8"

	"github.com/google/go-cmp/cmp"
	"go.uber.org/goleak"
)

func TestMain(m *testing.M) { goleak.VerifyTestMain(m) }

// serve returns the address of a server that answers so.
func serve(t *testing.T, answer http.HandlerFunc) *url.URL {
	t.Helper()
	server := httptest.NewServer(answer)
	t.Cleanup(server.Close)
	u, err := ParseURL(server.URL)
	if err != nil {
		t.Fatal(err)
	}
	return u
}

// client returns a client of its own connections, which end with the test.
func client(t *testing.T, o Options) *http.Client {
	t.Helper()
	transport := &http.Transport{}
	t.Cleanup(transport.CloseIdleConnections)
	o.Transport = transport
	return NewClient(o)
}

func get(t *testing.T, c *http.Client, address string) (string, error) {
	t.Helper()
	resp, err := c.Get(address)
	if err != nil {
		return "", err
	}
	defer resp.Body.Close()
	body, err := io.ReadAll(resp.Body)
	return string(body), err
}

func TestTokenIsReadEachTime(t *testing.T) {
	var got []string
	base := serve(t, func(_ http.ResponseWriter, r *http.Request) { got = append(got, r.Header.Get("Authorization")) })
	n := 0
	c := client(t, Options{Base: base, Scheme: Bearer, Token: func(context.Context) (string, error) { n++; return strconv.Itoa(n), nil }})
	for range 2 {
		if _, err := get(t, c, base.String()); err != nil {
			t.Fatal(err)
		}
	}
	if diff := cmp.Diff([]string{"Bearer 1", "Bearer 2"}, got); diff != "" {
		t.Errorf("tokens (-want +got):\n%s", diff)
	}
}

func TestNothingIsSentWithoutTheToken(t *testing.T) {
	base := serve(t, func(http.ResponseWriter, *http.Request) { t.Error("a request was sent") })
	c := client(t, Options{Base: base, Scheme: Plain, Token: func(context.Context) (string, error) { return "", errors.New("open token: no such file") }})
	if _, err := get(t, c, base.String()); err == nil || !strings.Contains(err.Error(), "read forge token: open token: no such file") {
		t.Errorf("got %v", err)
	}
}

func TestRedirects(t *testing.T) {
	thief := serve(t, func(http.ResponseWriter, *http.Request) { t.Error("another host was asked") })
	var base *url.URL
	base = serve(t, func(w http.ResponseWriter, r *http.Request) {
		switch r.URL.Path {
		case "/renamed":
			http.Redirect(w, r, "/new", http.StatusMovedPermanently)
		case "/away":
			http.Redirect(w, r, thief.String(), http.StatusTemporaryRedirect)
		case "/https":
			http.Redirect(w, r, "https://"+base.Host+"/new", http.StatusTemporaryRedirect)
		case "/circle":
			http.Redirect(w, r, "/circle", http.StatusFound)
		default:
			_, _ = io.WriteString(w, "here")
		}
	})
	c := client(t, Options{Base: base, Scheme: Bearer, Token: func(context.Context) (string, error) { return "s3cret", nil }})
	if got, err := get(t, c, base.String()+"/renamed"); got != "here" {
		t.Errorf("renamed: %q, %v", got, err)
	}
	for _, path := range []string{"/away", "/https", "/circle"} {
		if _, err := get(t, c, base.String()+path); err == nil || !strings.Contains(err.Error(), "configure its new address") || strings.Contains(err.Error(), "s3cret") {
			t.Errorf("%s: %v", path, err)
		}
	}
	// A write that would become a read has not been done.
	resp, err := c.Post(base.String()+"/renamed", "application/json", strings.NewReader("{}"))
	if err == nil {
		_ = resp.Body.Close()
		t.Error("a write was redirected to a read")
	}
	if _, err := get(t, c, thief.String()); err == nil || !strings.Contains(err.Error(), "not the forge's host") {
		t.Errorf("another host: %v", err)
	}
}

func TestAnswersAreBounded(t *testing.T) {
	block := strings.Repeat("x", 1<<20)
	base := serve(t, func(w http.ResponseWriter, _ *http.Request) {
		for range answerLimit>>20 + 2 {
			if _, err := io.WriteString(w, block); err != nil {
				return
			}
		}
	})
	got, err := get(t, client(t, Options{Base: base}), base.String())
	if err != nil || len(got) != answerLimit {
		t.Errorf("%d bytes, %v", len(got), err)
	}
}

// TestValuesAreCounted lets a forge answer with lists that are small on the wire.
func TestValuesAreCounted(t *testing.T) {
	var say string
	base := serve(t, func(w http.ResponseWriter, _ *http.Request) { _, _ = io.WriteString(w, say) })
	c := client(t, Options{Base: base})
	for name, tt := range map[string]struct {
		say string
		ok  bool
	}{
		"a page":              {"[" + strings.Repeat(`{"a":1,"b":[2,3]},`, maxValues/6) + "{}]", true},
		"signs in a text":     {"[" + strings.Repeat(`"`+strings.Repeat(`{\",[`, 1000)+`",`, maxValues/100) + "1]", true},
		"backslashes":         {`["` + strings.Repeat(`\\`, maxValues) + `",` + strings.Repeat("{},", maxValues) + "1]", false},
		"empty objects":       {"[" + strings.Repeat("{},", maxValues) + "{}]", false},
		"lists":               {strings.Repeat("[", maxValues+1), false},
		"numbers":             {"[" + strings.Repeat("1,", maxValues+1) + "1]", false},
		"a page for a person": {"<html>" + strings.Repeat("words, words and \"more\" ", 1000), true},
	} {
		say = tt.say
		got, err := get(t, c, base.String())
		if tt.ok != (err == nil) || tt.ok && got != say || !tt.ok && !strings.Contains(err.Error(), "more than 300000 values") {
			t.Errorf("%s: %d bytes of %d, %v", name, len(got), len(say), err)
		}
	}
}

func TestParseURL(t *testing.T) {
	for raw, good := range map[string]bool{
		"https://git.example.com":               true,
		"http://127.0.0.1:3000/forge":           true,
		"git.example.com":                       false,
		"https://":                              false,
		"https://bot:hunter2@git.example.com":   false,
		"ssh://git.example.com":                 false,
		"https://git.example.com/%zz?t=hunter2": false,
		"bot:hunter2@git.example.com":           false,
	} {
		_, err := ParseURL(raw)
		if (err == nil) != good {
			t.Errorf("%s: %v", raw, err)
		}
		if err != nil && strings.Contains(err.Error(), "hunter2") {
			t.Errorf("the error shows the password: %v", err)
		}
	}
}

func TestRetryAfter(t *testing.T) {
	for value, want := range map[string][2]time.Duration{
		"":                                      {0, 0},
		"soon":                                  {0, 0},
		"37":                                    {37 * time.Second, 37 * time.Second},
		"-1":                                    {0, 0},
		"999999":                                {maxRetryAfter, maxRetryAfter},
		"9223372036854775807":                   {maxRetryAfter, maxRetryAfter},
		"Mon, 02 Jan 2006 15:04:05 GMT":         {0, 0},
		"Fri, 01 Jan 2100 00:00:00 GMT":         {maxRetryAfter, maxRetryAfter},
		nowPlus(30 * time.Minute):               {20 * time.Minute, 30 * time.Minute},
		"Thu, 99 Foo 2100 00:00:00 GMT, indeed": {0, 0},
	} {
		if got := RetryAfter(http.Header{"Retry-After": {value}}); got < want[0] || got > want[1] {
			t.Errorf("%q: %s, want %v", value, got, want)
		}
	}
}

func nowPlus(d time.Duration) string { return time.Now().Add(d).UTC().Format(http.TimeFormat) }

func TestFaultOf(t *testing.T) {
	for _, tt := range []struct {
		code  int
		h     http.Header
		fault Fault
		after time.Duration
	}{
		{401, nil, FaultDenied, 0},
		{403, nil, FaultDenied, 0},
		{403, http.Header{"Retry-After": {"5"}}, FaultBusy, 5 * time.Second},
		{403, http.Header{"X-Ratelimit-Remaining": {"0"}}, FaultBusy, 0},
		{404, nil, FaultMissing, 0},
		{408, nil, FaultBusy, 0},
		{409, nil, FaultMissing, 0},
		{422, nil, FaultRefused, 0},
		{429, http.Header{"Retry-After": {"5"}}, FaultBusy, 5 * time.Second},
		{500, nil, FaultMissing, 0},
		{503, http.Header{"Retry-After": {"5"}}, FaultBusy, 5 * time.Second},
		{0, nil, FaultBusy, 0},
	} {
		if fault, after := faultOf(tt.code, tt.h); fault != tt.fault || after != tt.after {
			t.Errorf("%d %v: %s after %s, want %s after %s", tt.code, tt.h, fault, after, tt.fault, tt.after)
		}
	}
}

func FuzzQuote(f *testing.F) {
	for _, seed := range []string{"", "Not\r\n  Found\x00", "\u202eevil", strings.Repeat("ü", 5000), "\xff\xfe"} {
		f.Add(seed)
	}
	f.Fuzz(func(t *testing.T, said string) {
		got := Quote(said)
		if !utf8.ValidString(got) || utf8.RuneCountInString(got) > quoted || strings.ContainsAny(got, "\n\r\x00\u202e") {
			t.Errorf("%q", got)
		}
	})
}
