package app

import (
	"context"
	"fmt"
	"log/slog"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/weir-gitops/weir/cmd/weir/internal/config"
	"github.com/weir-gitops/weir/cmd/weir/internal/giteatest"
	"github.com/weir-gitops/weir/reconciler/awsemu"
	"github.com/weir-gitops/weir/render/redact"
	"github.com/weir-gitops/weir/status/statustest"
	"github.com/weir-gitops/weir/status/wording"
)

// giteaWorld is a world whose repository and forge are on a real Gitea.
type giteaWorld struct {
	*world
	server *giteatest.Server
	// owner has the repository, and weir's tokens where a test gives no others.
	owner *giteatest.User
	repo  *giteatest.Repository
	clone *giteatest.Clone
	log   *statustest.Log
}

// giteaScopes are those that weir's documentation asks for.
var giteaScopes = []string{"write:repository", "write:issue", "read:user"}

// newGiteaWorld makes an owner of that name with an empty repository.
func newGiteaWorld(t testing.TB, s *giteatest.Server, owner string, o awsemu.Options) *giteaWorld {
	t.Helper()
	g := &giteaWorld{world: newWorld(t, o), server: s, owner: s.User(owner), log: &statustest.Log{}}
	g.repo = g.owner.Repository("fleet")
	g.clone = g.repo.Clone(g.owner)
	all := g.owner.Token(giteaScopes...)
	g.put("source-token", all)
	g.put("token", all)
	g.put("webhook-secret", hookSecret)
	return g
}

// put writes a file beside the configuration.
func (g *giteaWorld) put(name, content string) {
	g.t.Helper()
	if err := os.WriteFile(filepath.Join(g.dir, name), []byte(content+"\n"), 0o600); err != nil {
		g.t.Fatal(err)
	}
}

// config follows the repository on Gitea, looked at each hour: what happens sooner
// is the webhook's doing.
func (g *giteaWorld) config() *config.Config {
	g.t.Helper()
	c := g.world.config()
	c.Sources[0].URL, c.Sources[0].Interval = g.repo.URL()+".git", time.Hour
	c.Sources[0].Auth.TokenFile = filepath.Join(g.dir, "source-token")
	c.PublicURL = "https://weir.example.com/"
	c.Forges[0].URL, c.Forges[0].WebhookSecretFile = g.repo.URL(), filepath.Join(g.dir, "webhook-secret")
	return c
}

// run starts a daemon with a hook on Gitea that tells it of the given events. It
// ends with the test.
func (g *giteaWorld) run(c *config.Config, events ...string) *App {
	g.t.Helper()
	secrets := &redact.Registry{}
	a, err := New(g.t.Context(), Options{
		Config: c, Version: "test", Secrets: secrets,
		Logger: slog.New(secrets.Handler(slog.NewTextHandler(g.log, &slog.HandlerOptions{Level: slog.LevelDebug}))),
		Getenv: func(name string) string {
			if name == "HOME" {
				return g.dir
			}
			return g.env[name]
		},
	})
	if err != nil {
		g.t.Fatal(err)
	}
	a.Start(g.t.Context())
	g.t.Cleanup(func() {
		if err := a.Stop(context.Background()); err != nil {
			g.t.Errorf("daemon ended with %v", err)
		}
		if g.t.Failed() {
			g.t.Logf("the daemon's log:\n%s", g.log)
		}
	})
	if len(events) > 0 {
		g.repo.Hook("http://"+a.Addr()+"/hooks/pools", hookSecret, events...)
	}
	return a
}

// finally waits for the last state of a context with words in its description, which
// it returns: a pending context says what it waits for only after a while.
func (g *giteaWorld) finally(sha, context, state string, words ...string) string {
	g.t.Helper()
	var last giteatest.Status
	eventually(g.t, context+" of "+wording.Short(sha), func() string {
		if last = g.repo.Last(sha, context); last.State != state || !containsAll(last.Description, words) {
			return fmt.Sprintf("it is %q (%s), want %s %q", last.State, last.Description, state, words)
		}
		return ""
	})
	return last.Description
}

// logged waits for words in the daemon's log.
func (g *giteaWorld) logged(words ...string) {
	g.t.Helper()
	eventually(g.t, "the log", func() string {
		for line := range strings.Lines(g.log.String()) {
			if containsAll(line, words) {
				return ""
			}
		}
		return fmt.Sprintf("no line has %q", words)
	})
}

func containsAll(s string, words []string) bool {
	for _, w := range words {
		if !strings.Contains(s, w) {
			return false
		}
	}
	return true
}

// TestGitea is the life of commits on a real Gitea.
func TestGitea(t *testing.T) {
	s := giteatest.New(t)
	t.Run("push", func(t *testing.T) { testGiteaPush(t, s) })
	t.Run("superseded", func(t *testing.T) { testGiteaSuperseded(t, s) })
	t.Run("empty", func(t *testing.T) { testGiteaEmpty(t, s) })
	t.Run("status token", func(t *testing.T) { testGiteaStatusToken(t, s) })
	t.Run("source token", func(t *testing.T) { testGiteaSourceToken(t, s) })
}

func testGiteaPush(t *testing.T, s *giteatest.Server) {
	g := newGiteaWorld(t, s, "pusher", quickAWS())
	g.clone.Write(overlay(map[string]string{"workers": pool("workers", "m5.large", 3)}))
	first := g.clone.Push("main", "first")
	a := g.run(g.config(), "push", "status", "pull_request", "issue_comment")
	if text := g.finally(first, "fleet/apply", "success"); text != "prod: 1 pool created" {
		t.Errorf("the first commit: %q", text)
	}
	g.finally(first, "fleet/apply/prod", "success")

	g.clone.Write(overlay(map[string]string{"workers": pool("workers", "m5.large", 4)}))
	began := time.Now()
	second := g.clone.Push("main", "second")
	g.finally(second, "fleet/apply", "success")
	t.Logf("push to final status, by webhook: %s", time.Since(began).Round(time.Millisecond))
	for _, context := range []string{"fleet/apply", "fleet/apply/prod"} {
		if got := g.repo.States(second, context); !succeeded(got) {
			t.Errorf("%s went through %q", context, got)
		}
	}
	if last := g.repo.Last(second, "fleet/apply/prod"); last.TargetURL != "https://weir.example.com/targets/prod" {
		t.Errorf("the status links to %q", last.TargetURL)
	}

	// A field that is none: the file and the line are named, and nothing changes.
	writes := len(g.writes())
	g.clone.Write(map[string]string{"overlays/prod/workers.yaml": strings.Replace(pool("workers", "m5.large", 5), "  maxSize: 5", "  maxSise: 5", 1)})
	broken := g.clone.Push("main", "a slip")
	for _, context := range []string{"fleet/apply", "fleet/apply/prod"} {
		if text := g.finally(broken, context, "failure"); !strings.Contains(text, "overlays/prod/workers.yaml:19") || !strings.Contains(text, "maxSise") {
			t.Errorf("%s does not name the place: %q", context, text)
		}
	}
	if got := len(g.writes()); got != writes {
		t.Errorf("a broken commit led to %d writes", got-writes)
	}

	// A commit that touches no target, and a branch that weir does not follow.
	g.clone.Write(overlay(map[string]string{"workers": pool("workers", "m5.large", 4)}))
	mended := g.clone.Push("main", "mended")
	g.finally(mended, "fleet/apply", "success")
	g.clone.Write(map[string]string{"README.md": "Pools.\n"})
	aside := g.clone.Push("main", "docs")
	if text := g.finally(aside, "fleet/apply", "success"); text != "no target affected" {
		t.Errorf("a commit that touches nothing: %q", text)
	}
	other := g.clone.Push("other", "elsewhere")
	for _, sha := range []string{second, broken, mended, aside} {
		g.logged("msg=webhook", "result=accepted", "event=push", sha)
	}
	g.logged("msg=webhook", "result=ignored", "event=push", other)
	g.logged("msg=webhook", "result=ignored", "event=status")
	if got := g.repo.Statuses(other); len(got) > 0 {
		t.Errorf("a branch that is not followed has statuses: %v", got)
	}
	if strings.Contains(get(t, a, "/metrics"), `result="unsigned"`) {
		t.Error("a webhook of Gitea did not prove itself")
	}
}

// testGiteaSuperseded pushes while the commit before is not done.
func testGiteaSuperseded(t *testing.T, s *giteatest.Server) {
	g := newGiteaWorld(t, s, "hasty", quickAWS())
	g.extra = "  suspend: true\n"
	g.clone.Write(overlay(map[string]string{"workers": pool("workers", "m5.large", 3)}))
	first := g.clone.Push("main", "first")
	g.run(g.config(), "push")
	g.finally(first, "fleet/apply", "pending")
	g.clone.Write(overlay(map[string]string{"workers": pool("workers", "m5.large", 4)}))
	second := g.clone.Push("main", "second")
	g.finally(second, "fleet/apply", "pending", "the end of a suspension")
	for _, context := range []string{"fleet/apply", "fleet/apply/prod"} {
		if text := g.finally(first, context, "error"); text != "superseded by "+wording.Short(second) {
			t.Errorf("%s of the first commit: %q", context, text)
		}
	}
}

// testGiteaEmpty starts before the first push.
func testGiteaEmpty(t *testing.T, s *giteatest.Server) {
	g := newGiteaWorld(t, s, "early", quickAWS())
	g.run(g.config(), "push")
	g.logged("empty-repository", "push a first commit")
	g.clone.Write(overlay(map[string]string{"workers": pool("workers", "m5.large", 3)}))
	g.finally(g.clone.Push("main", "first"), "fleet/apply", "success")
}

// testGiteaStatusToken has tokens that may not write statuses. Each is named for
// what it lacks, and a good one in the file is taken at once.
func testGiteaStatusToken(t *testing.T, s *giteatest.Server) {
	for _, tc := range []struct {
		name  string
		token func(g *giteaWorld) string
		want  []string
	}{
		{"wrong", func(*giteaWorld) string { return strings.Repeat("0123456789", 4) }, []string{"the token is not accepted", "401"}},
		{"scope", func(g *giteaWorld) string { return g.owner.Token("read:repository") }, []string{"write:repository", "403"}},
		{"reader", func(g *giteaWorld) string {
			reader := g.server.User("only-reads")
			g.repo.Grant(reader, "read")
			return reader.Token(giteaScopes...)
		}, []string{"write access", "403"}},
		{"stranger", func(g *giteaWorld) string { return g.server.User("stranger").Token(giteaScopes...) }, []string{"must have access", "404"}},
	} {
		t.Run(tc.name, func(t *testing.T) {
			g := newGiteaWorld(t, s, "tokens-"+tc.name, quickAWS())
			refused := tc.token(g)
			g.put("token", refused)
			g.clone.Write(overlay(map[string]string{"workers": pool("workers", "m5.large", 3)}))
			first := g.clone.Push("main", "first")
			g.run(g.config())
			g.logged(append([]string{"commit statuses are refused"}, tc.want...)...)
			if got := g.repo.Statuses(first); len(got) > 0 {
				t.Errorf("statuses: %v", got)
			}
			g.put("token", g.owner.Token(giteaScopes...))
			g.finally(first, "fleet/apply", "success")
			if strings.Contains(g.log.String(), refused) {
				t.Error("the log shows the token")
			}
		})
	}
}

// testGiteaSourceToken has tokens that may not read the repository.
func testGiteaSourceToken(t *testing.T, s *giteatest.Server) {
	for _, tc := range []struct {
		name  string
		token func(g *giteaWorld) string
		want  []string
	}{
		{"wrong", func(*giteaWorld) string { return strings.Repeat("0123456789", 4) }, []string{"auth-failed"}},
		{"scope", func(g *giteaWorld) string { return g.owner.Token("read:user") }, []string{"read:repository"}},
		{"stranger", func(g *giteaWorld) string { return g.server.User("passer-by").Token(giteaScopes...) }, []string{"not-found"}},
	} {
		t.Run(tc.name, func(t *testing.T) {
			g := newGiteaWorld(t, s, "reads-"+tc.name, quickAWS())
			refused := tc.token(g)
			g.put("source-token", refused)
			g.clone.Write(overlay(map[string]string{"workers": pool("workers", "m5.large", 3)}))
			first := g.clone.Push("main", "first")
			g.run(g.config())
			g.logged(append([]string{"source cannot be read"}, tc.want...)...)
			if got := g.writes(); len(got) > 0 {
				t.Errorf("writes: %v", got)
			}
			g.put("source-token", g.owner.Token("read:repository"))
			g.finally(first, "fleet/apply", "success")
			if strings.Contains(g.log.String(), refused) {
				t.Error("the log shows the token")
			}
		})
	}
}
