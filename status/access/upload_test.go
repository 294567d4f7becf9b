package access

import (
	"io"
	"net/http"
	"net/http/httptest"
	"strings"
	"testing"
)

// A reader who is not anonymous may send a work tree: by a program, as often as commands, and within the limit of size.
func TestWhoMaySendSomething(t *testing.T) {
	const elsewhere = "192.0.2.7"
	token := func(t string) []string {
		return []string{"Authorization: Bearer " + t, "X-Weir-Command: 1", "Content-Type: application/gzip"}
	}
	named := newSite(t, nil)
	everybody := newSite(t, func(c *configured) { c.Access.Anonymous = AnonymousRead })
	alone := openSite(t)
	for name, tc := range map[string]struct {
		site       *site
		from, path string
		fields     []string
		code       int
		has        string
	}{
		"a reader":                              {named, elsewhere, uploadPath, token(readerToken), 200, "reader/token/read"},
		"an operator":                           {named, elsewhere, uploadPath + "?target=a", token(opsToken), 200, "ops/token/operate"},
		"who sees metrics":                      {named, elsewhere, uploadPath, token(metricsToken), 403, "the role of prometheus is metrics, and this needs read"},
		"nobody":                                {named, elsewhere, uploadPath, token("")[1:], 401, "the caller is unknown"},
		"nobody on this machine":                {named, "127.0.0.1", uploadPath, token("")[1:], 401, "the caller is unknown"},
		"a bad token":                           {named, elsewhere, uploadPath, token(strings.Repeat("x", 40)), 401, "the token is unknown"},
		"without the header":                    {named, elsewhere, uploadPath, token(readerToken)[:1], 403, "not from pages"},
		"from another origin":                   {named, elsewhere, uploadPath, append(token(readerToken), "Origin: https://evil.example.com"), 403, "not weir"},
		"another address":                       {named, elsewhere, uploadPath + "/", token(readerToken), 403, "this needs operate"},
		"anonymous, where all may read":         {everybody, elsewhere, uploadPath, token("")[1:], 401, "needs more than permission to read pages"},
		"anonymous there, on this machine":      {everybody, "127.0.0.1", uploadPath, token("")[1:], 401, "needs more than permission to read pages"},
		"on this machine, where nobody logs in": {alone, "127.0.0.1", uploadPath, append(token("")[1:], "Host: 127.0.0.1:8344"), 200, "through //read"},
		"there by another name":                 {alone, "127.0.0.1", uploadPath, append(token("")[1:], "Host: evil.example.com"), 421, ""},
		"there without the header":              {alone, "127.0.0.1", uploadPath, []string{"Host: 127.0.0.1:8344"}, 403, "not from pages"},
	} {
		rec := tc.site.ask(http.MethodPost, tc.path, tc.from, "x", tc.fields...)
		if rec.Code != tc.code || !strings.Contains(rec.Body.String(), tc.has) {
			t.Errorf("%s: %d %s", name, rec.Code, rec.Body)
		}
	}
	if rec := named.ask(http.MethodGet, uploadPath, elsewhere, "", token(readerToken)...); rec.Code != 200 {
		t.Errorf("reading there: %d", rec.Code)
	}
	refused := 0
	for range 40 {
		if rec := named.ask(http.MethodPost, uploadPath, elsewhere, "x", token(readerToken)...); rec.Code == http.StatusTooManyRequests {
			refused++
		}
	}
	if refused == 0 {
		t.Error("there is no end to what one sends")
	}
}

// Bodies are as large as they may be, each at its own address; that of a proof is read
// whole before it counts.
func TestHowMuchMayBeSent(t *testing.T) {
	s := newSite(t, nil)
	read := s.guard.Handler(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		if _, err := io.Copy(io.Discard, r.Body); err != nil {
			w.WriteHeader(http.StatusRequestEntityTooLarge)
		}
	}))
	send := func(path string, size int, authorization func(body []byte) string) int {
		body := []byte(strings.Repeat("x", size))
		r := httptest.NewRequest(http.MethodPost, path, strings.NewReader(string(body)))
		r.RemoteAddr, r.Host = "127.0.0.1:4000", "weir.example.com"
		r.Header.Set("X-Weir-Command", "1")
		r.Header.Set("Authorization", authorization(body))
		rec := httptest.NewRecorder()
		read.ServeHTTP(rec, r)
		return rec.Code
	}
	byToken := func([]byte) string { return "Bearer " + opsToken }
	byProof := func(path string) func([]byte) string {
		return func(body []byte) string {
			p := TokenProof(opsToken)
			nonce, hello := p.Hello()
			welcome := s.ask(http.MethodGet, ProofPath, "127.0.0.1", "", "Authorization: "+hello).Body.Bytes()
			signed, err := p.Sign(nonce, welcome, http.MethodPost, path, body)
			if err != nil {
				t.Fatal(err)
			}
			return signed
		}
	}
	for _, tc := range []struct {
		path string
		size int
		code int
	}{
		{uploadPath, 90 << 10, 200}, {uploadPath, 110 << 10, 413}, {"/api/v1/suspend", 60 << 10, 200}, {"/api/v1/suspend", 90 << 10, 413},
	} {
		if got := send(tc.path, tc.size, byToken); got != tc.code {
			t.Errorf("%s with %d bytes: %d", tc.path, tc.size, got)
		}
		if got := send(tc.path, tc.size, byProof(tc.path)); (got == 200) != (tc.code == 200) {
			t.Errorf("%s with %d bytes by a proof: %d", tc.path, tc.size, got)
		}
	}
}

// unread fails the test if a body is read.
type unread struct{ t *testing.T }

func (u unread) Read([]byte) (int, error) {
	u.t.Error("it was read")
	return 0, io.EOF
}

// weir reads a signed upload, and makes others wait for it, only once it knows that its sender may send it now.
func TestNothingIsReadOfWhoMayNotSend(t *testing.T) {
	s := newSite(t, nil)
	read := s.guard.Handler(http.HandlerFunc(func(http.ResponseWriter, *http.Request) {}))
	send := func(token string, signed []byte, body io.Reader) *httptest.ResponseRecorder {
		p := TokenProof(token)
		nonce, hello := p.Hello()
		authorization, err := p.Sign(nonce, s.ask(http.MethodGet, ProofPath, "127.0.0.1", "", "Authorization: "+hello).Body.Bytes(), http.MethodPost, uploadPath, signed)
		if err != nil {
			t.Fatal(err)
		}
		r := httptest.NewRequest(http.MethodPost, uploadPath, body)
		r.RemoteAddr, r.Host = "127.0.0.1:4000", "weir.example.com"
		r.Header.Set("X-Weir-Command", "1")
		r.Header.Set("Authorization", authorization)
		rec := httptest.NewRecorder()
		read.ServeHTTP(rec, r)
		return rec
	}
	if rec := send(metricsToken, []byte("x"), unread{t}); rec.Code != http.StatusForbidden || !strings.Contains(rec.Body.String(), "needs read") {
		t.Errorf("who sees metrics: %d %s", rec.Code, rec.Body)
	}
	if rec := send(readerToken, []byte("x"), strings.NewReader("y")); rec.Code != http.StatusUnauthorized {
		t.Errorf("another body than was signed: %d %s", rec.Code, rec.Body)
	}
	codes := map[int]int{}
	for codes[http.StatusTooManyRequests] == 0 && codes[http.StatusOK] < 100 {
		codes[send(readerToken, []byte("x"), strings.NewReader("x")).Code]++
	}
	if rec := send(readerToken, []byte("x"), unread{t}); rec.Code != http.StatusTooManyRequests || codes[http.StatusOK] == 0 {
		t.Errorf("too often: %d %s, before that %v", rec.Code, rec.Body, codes)
	}
}
