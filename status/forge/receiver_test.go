package forge

import (
	"bytes"
	"crypto/hmac"
	"crypto/sha1" //nolint:gosec // to show that it is not taken
	"crypto/sha256"
	"encoding/hex"
	"fmt"
	"io"
	"log/slog"
	"net/http"
	"net/http/httptest"
	"os"
	"path/filepath"
	"strings"
	"sync"
	"testing"
	"time"

	"go.uber.org/goleak"
)

func TestMain(m *testing.M) { goleak.VerifyTestMain(m) }

const secret = "a-secret-of-more-than-16-bytes"

// fakeSource follows main and counts what it is told.
type fakeSource struct {
	mu     sync.Mutex
	at     string
	nudges []time.Time
}

func (s *fakeSource) Follows(ref string) bool { return ref == "refs/heads/main" }

func (s *fakeSource) At() string {
	s.mu.Lock()
	defer s.mu.Unlock()
	return s.at
}

func (s *fakeSource) Nudge() {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.nudges = append(s.nudges, time.Now())
}

func (s *fakeSource) count() int {
	s.mu.Lock()
	defer s.mu.Unlock()
	return len(s.nudges)
}

// bench is a receiver with one source of each kind.
type bench struct {
	t       *testing.T
	r       *Receiver
	sources map[string]*fakeSource
	log     bytes.Buffer
	file    string
	results map[Result]int
}

func newBench(t *testing.T) *bench {
	t.Helper()
	b := &bench{t: t, sources: map[string]*fakeSource{}, file: filepath.Join(t.TempDir(), "secret"), results: map[Result]int{}}
	b.write(secret + "\n")
	var mu sync.Mutex
	b.r = NewReceiver(Options{Logger: slog.New(slog.NewTextHandler(&b.log, nil)), Received: func(_ string, r Result) {
		mu.Lock()
		defer mu.Unlock()
		b.results[r]++
	}})
	hooks := map[string]Hook{}
	for _, k := range []Kind{GitHub, GitLab, Gitea, Generic} {
		b.sources[string(k)] = &fakeSource{}
		hooks[string(k)] = Hook{Kind: k, SecretFile: b.file, Address: "https://git.example.com/platform/fleet", Source: b.sources[string(k)]}
	}
	b.r.Set(hooks)
	return b
}

func (b *bench) write(text string) {
	b.t.Helper()
	if err := os.WriteFile(b.file, []byte(text), 0o600); err != nil {
		b.t.Fatal(err)
	}
}

func sign(key, body string) string {
	mac := hmac.New(sha256.New, []byte(key))
	mac.Write([]byte(body))
	return hex.EncodeToString(mac.Sum(nil))
}

// send delivers to a source as its forge would.
func (b *bench) send(source string, h http.Header, body, remote string) *httptest.ResponseRecorder {
	req := httptest.NewRequest(http.MethodPost, Prefix+source, strings.NewReader(body))
	req.Header, req.RemoteAddr = h.Clone(), remote
	rec := httptest.NewRecorder()
	b.r.ServeHTTP(rec, req)
	return rec
}

func push(commit string) string {
	return `{"ref":"refs/heads/main","after":"` + commit + `","commit":"` + commit + `","repository":{"full_name":"platform/fleet"}}`
}

func signed(body string, more ...string) http.Header {
	return header(append([]string{"X-GitHub-Event", "push", "X-Hub-Signature-256", "sha256=" + sign(secret, body)}, more...)...)
}

const somewhere = "192.0.2.7:1234"

func TestReceiverKnowsWhoSends(t *testing.T) {
	body := push(sha1b)
	generic := `{"ref":"refs/heads/main"}`
	good := sign(secret, body)
	mac := hmac.New(sha1.New, []byte(secret))
	mac.Write([]byte(body))
	legacy := "sha1=" + hex.EncodeToString(mac.Sum(nil))
	for name, tt := range map[string]struct {
		source, body string
		h            http.Header
		want         int
	}{
		"github":                {"github", body, header("X-GitHub-Event", "push", "X-Hub-Signature-256", "sha256="+good), 202},
		"gitea":                 {"gitea", body, header("X-Gitea-Event", "push", "X-Gitea-Signature", good), 202},
		"forgejo":               {"gitea", body, header("X-Forgejo-Event", "push", "X-Forgejo-Signature", good, "X-Gitea-Signature", "no"), 202},
		"gitea as github":       {"gitea", body, header("X-Gitea-Event", "push", "X-Hub-Signature-256", "sha256="+good), 202},
		"gitlab":                {"gitlab", `{"object_kind":"push","ref":"refs/heads/main","project":{"path_with_namespace":"platform/fleet"}}`, header("X-Gitlab-Event", "Push Hook", "X-Gitlab-Token", secret), 202},
		"generic":               {"generic", generic, header("X-Signature-256", "sha256="+sign(secret, generic)), 202},
		"generic as flux":       {"generic", generic, header("X-Signature", "sha256="+sign(secret, generic)), 202},
		"no signature":          {"github", body, header("X-GitHub-Event", "push"), 401},
		"an empty one":          {"github", body, header("X-GitHub-Event", "push", "X-Hub-Signature-256", "sha256="), 401},
		"no hex":                {"github", body, header("X-GitHub-Event", "push", "X-Hub-Signature-256", "sha256=zz"), 401},
		"another key":           {"github", body, header("X-GitHub-Event", "push", "X-Hub-Signature-256", "sha256="+sign("another", body)), 401},
		"another body":          {"github", body + " ", header("X-GitHub-Event", "push", "X-Hub-Signature-256", "sha256="+good), 401},
		"the first half":        {"github", body, header("X-GitHub-Event", "push", "X-Hub-Signature-256", "sha256="+good[:32]), 401},
		"SHA-1":                 {"github", body, header("X-GitHub-Event", "push", "X-Hub-Signature", legacy, "X-Hub-Signature-256", legacy), 401},
		"a key of no bytes":     {"github", body, header("X-GitHub-Event", "push", "X-Hub-Signature-256", "sha256="+sign("", body)), 401},
		"gitlab without":        {"gitlab", body, header("X-Gitlab-Event", "Push Hook"), 401},
		"gitlab with half":      {"gitlab", body, header("X-Gitlab-Event", "Push Hook", "X-Gitlab-Token", secret[:8]), 401},
		"gitlab signed instead": {"gitlab", body, header("X-Gitlab-Event", "Push Hook", "X-Hub-Signature-256", "sha256="+good), 401},
		"another forge's token": {"github", body, header("X-GitHub-Event", "push", "X-Gitlab-Token", secret), 401},
		"no such source":        {"nothing", body, header("X-GitHub-Event", "push", "X-Hub-Signature-256", "sha256="+good), 401},
		"no source":             {"", body, header("X-GitHub-Event", "push", "X-Hub-Signature-256", "sha256="+good), 401},
		"below a source":        {"github/x", body, header("X-GitHub-Event", "push", "X-Hub-Signature-256", "sha256="+good), 401},
		"no event":              {"github", body, header("X-Hub-Signature-256", "sha256="+good), 400},
		"a ping":                {"github", body, header("X-GitHub-Event", "ping", "X-Hub-Signature-256", "sha256="+good), 200},
	} {
		t.Run(name, func(t *testing.T) {
			b := newBench(t)
			rec := b.send(tt.source, tt.h, tt.body, somewhere)
			if rec.Code != tt.want {
				t.Errorf("got %d %s, want %d", rec.Code, rec.Body, tt.want)
			}
			if rec.Code == 401 && rec.Body.String() != "Unauthorized\n" {
				t.Errorf("the answer says more than that it is unauthorized: %q", rec.Body)
			}
			if strings.Contains(b.log.String(), secret) {
				t.Errorf("the log shows the secret: %s", &b.log)
			}
			if queued := len(b.r.queue); queued == 1 != (tt.want == 202) {
				t.Errorf("%d hints are queued", queued)
			}
		})
	}
}

func TestReceiverReadsTheSecretEachTime(t *testing.T) {
	b := newBench(t)
	other := "another-secret-for-rotation"
	try := func(key string) int {
		body := push(fmt.Sprint(len(key), time.Now().UnixNano()))
		return b.send("github", header("X-GitHub-Event", "push", "X-Hub-Signature-256", "sha256="+sign(key, body)), body, somewhere).Code
	}
	want := func(when string, first, second int) {
		t.Helper()
		if a, b := try(secret), try(other); a != first || b != second {
			t.Errorf("%s: %d and %d, want %d and %d", when, a, b, first, second)
		}
	}
	want("with one secret", 202, 401)
	b.write(secret + "\n\n" + other + "\n")
	want("with both", 202, 202)
	b.write(other)
	want("with the other", 401, 202)
	for when, text := range map[string]string{"empty": "\n", "too short": "0123456789\n", "too many": strings.Repeat(secret+"\n", 5), "too large": strings.Repeat(secret, 1000)} {
		b.write(text)
		want(when, 503, 503)
	}
	if err := os.Remove(b.file); err != nil {
		t.Fatal(err)
	}
	want("without a file", 503, 503)
	if strings.Contains(b.log.String(), secret) {
		t.Error("the log shows the secret")
	}
}

func TestReceiverBounds(t *testing.T) {
	b := newBench(t)
	server := httptest.NewServer(b.r)
	defer server.Close()
	client := server.Client()
	defer client.CloseIdleConnections()
	post := func(body io.Reader) int {
		t.Helper()
		resp, err := client.Post(server.URL+Prefix+"github", "application/json", body)
		if err != nil {
			return http.StatusRequestEntityTooLarge // closed while it was sent
		}
		_ = resp.Body.Close()
		return resp.StatusCode
	}
	large := strings.Repeat("x", maxBody+1)
	if got := post(strings.NewReader(large)); got != 413 {
		t.Errorf("a large body gets %d", got)
	}
	if got := post(struct{ io.Reader }{strings.NewReader(large)}); got != 413 {
		t.Errorf("a large body of unknown length gets %d", got)
	}
	if got := post(strings.NewReader(large[:maxBody])); got != 401 {
		t.Errorf("a body that just fits gets %d", got)
	}
	resp, err := client.Get(server.URL + Prefix + "github")
	if err != nil {
		t.Fatal(err)
	}
	_ = resp.Body.Close()
	if resp.StatusCode != 405 || resp.Header.Get("Allow") != "POST" {
		t.Errorf("GET gets %d", resp.StatusCode)
	}
}

func TestReceiverDropsReplays(t *testing.T) {
	b := newBench(t)
	steps := []struct {
		what, commit, delivery string
		want                   Result
	}{
		{"first", sha1a, "1", Accepted},
		{"the same delivery", sha1a, "1", Repeated},
		{"the same under another id", sha1a, "2", Repeated},
		{"the next commit", sha1b, "3", Accepted},
		{"pushed back", sha1a, "4", Accepted},
		{"an old delivery", sha1b, "3", Repeated},
	}
	for _, s := range steps {
		body := push(s.commit)
		rec := b.send("github", signed(body, "X-GitHub-Delivery", s.delivery), body, somewhere)
		if got := strings.TrimSpace(rec.Body.String()); got != string(s.want) {
			t.Errorf("%s: %s, want %s", s.what, got, s.want)
		}
	}
	// The ids of one source are not those of another one.
	body := push(sha1a)
	if rec := b.send("gitea", header("X-Gitea-Event", "push", "X-Gitea-Signature", sign(secret, body), "X-Gitea-Delivery", "1"), body, somewhere); rec.Code != 202 {
		t.Errorf("another source: %d", rec.Code)
	}
}

func TestReceiverIgnoresWhatIsNotTheSources(t *testing.T) {
	b := newBench(t)
	for name, body := range map[string]string{
		"another branch":     `{"ref":"refs/heads/other","repository":{"full_name":"platform/fleet"}}`,
		"a tag":              `{"ref":"refs/tags/main","repository":{"full_name":"platform/fleet"}}`,
		"another repository": `{"ref":"refs/heads/main","repository":{"full_name":"platform/other"}}`,
	} {
		if rec := b.send("github", signed(body), body, somewhere); rec.Code != 200 {
			t.Errorf("%s: %d", name, rec.Code)
		}
	}
	if len(b.r.queue) != 0 {
		t.Error("something is queued")
	}
	if !strings.Contains(b.log.String(), "another repository") {
		t.Errorf("nobody is told of the other repository: %s", &b.log)
	}
}

func TestReceiverIsBusyWhenTheQueueIsFull(t *testing.T) {
	b := newBench(t)
	for i := range waiting + 1 {
		body := push(fmt.Sprintf("%040d", i+1))
		rec := b.send("github", signed(body, "X-GitHub-Delivery", fmt.Sprint(i)), body, somewhere)
		if want := map[bool]int{true: 202, false: 503}[i < waiting]; rec.Code != want {
			t.Fatalf("delivery %d: %d, want %d", i, rec.Code, want)
		}
	}
	// A refused delivery is taken when it is sent again.
	<-b.r.queue
	body := push(fmt.Sprintf("%040d", waiting+1))
	if rec := b.send("github", signed(body, "X-GitHub-Delivery", fmt.Sprint(waiting)), body, somewhere); rec.Code != 202 {
		t.Errorf("again: %d", rec.Code)
	}
}

func TestReceiverLimitsAddresses(t *testing.T) {
	b := newBench(t)
	body := push(sha1a)
	bad := header("X-GitHub-Event", "push", "X-Hub-Signature-256", "sha256="+sign("wrong", body))
	codes := map[int]int{}
	for i := range 200 {
		codes[b.send("github", bad, body, fmt.Sprintf("[2001:db8::%x]:99", i)).Code]++
	}
	if codes[401] < failureBurst || codes[429] < 100 {
		t.Errorf("one network guesses: %v", codes)
	}
	if rec := b.send("github", signed(body), body, somewhere); rec.Code != 202 {
		t.Errorf("another address is held up: %d", rec.Code)
	}
	for i := range 3 * addresses {
		b.send("github", bad, body, fmt.Sprintf("10.1.%d.%d:1", i/256, i%256))
	}
	if n := len(b.r.visitors.items); n != addresses || b.r.visitors.order.Len() != n {
		t.Errorf("%d addresses are remembered", n)
	}
}

func TestSetForgetsRemovedSources(t *testing.T) {
	b := newBench(t)
	body := push(sha1a)
	b.send("github", signed(body), body, somewhere)
	b.r.Set(nil)
	if rec := b.send("github", signed(body), body, somewhere); rec.Code != 401 || len(b.r.refs) != 0 {
		t.Errorf("got %d, %v", rec.Code, b.r.refs)
	}
}
