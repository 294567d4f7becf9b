package app

import (
	"crypto/x509"
	"encoding/pem"
	"flag"
	"net/http"
	"net/http/httptest"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/weir-gitops/weir/cmd/weir/internal/config"
	"github.com/weir-gitops/weir/status/access"
	"github.com/weir-gitops/weir/status/browsertest"
)

var actionShots = flag.String("action-shots", "", "write screenshots of logging in and of actions to this directory")

// guardedConfig has the daemon listen with TLS and let in one operator.
func guardedConfig(w *world, token string) *config.Config {
	w.t.Helper()
	file := func(name, text string) string {
		path := filepath.Join(w.dir, name)
		if err := os.WriteFile(path, []byte(text), 0o600); err != nil {
			w.t.Fatal(err)
		}
		return path
	}
	srv := httptest.NewTLSServer(http.NotFoundHandler())
	pair := srv.TLS.Certificates[0]
	srv.Close()
	key, err := x509.MarshalPKCS8PrivateKey(pair.PrivateKey)
	if err != nil {
		w.t.Fatal(err)
	}
	c := w.config()
	c.TLS = config.TLS{
		CertFile: file("cert.pem", string(pem.EncodeToMemory(&pem.Block{Type: "CERTIFICATE", Bytes: pair.Certificate[0]}))),
		KeyFile:  file("key.pem", string(pem.EncodeToMemory(&pem.Block{Type: "PRIVATE KEY", Bytes: key}))),
	}
	c.Access = access.Access{Tokens: []access.Token{{Name: "ann", Role: access.RoleOperate, File: file("ann", token)}}}
	return c
}

// TestSomebodyActsByTheKeyboard logs in, suspends a target, resumes it, approves its
// plan and logs out, in a real browser and without a mouse.
func TestSomebodyActsByTheKeyboard(t *testing.T) {
	t.Parallel()
	browser := browsertest.Start(t)
	w := newWorld(t, quickAWS())
	w.extra = "  apply: as-reviewed\n"
	w.repo.Write(overlay(map[string]string{"web": pool("web", "m6i.large", 3)}))
	w.repo.Commit("a pool")
	token := strings.Repeat("a-token-", 5)
	a, stop := w.startConfig(guardedConfig(w, token), nil)
	defer stop()
	eventually(t, "a plan that waits", func() string {
		if s, _ := a.current.Targets.Find("prod"); s.Last == nil || s.Last.Plan == nil || len(s.Last.Plan.Steps) == 0 {
			return "there is none"
		}
		return ""
	})

	b := browser.Open(t, a.PageURL()+"/targets/prod", 1280, "light")
	shot := func(name string) {
		if *actionShots != "" {
			if err := os.WriteFile(filepath.Join(*actionShots, name+".png"), b.Picture(1000), 0o600); err != nil {
				t.Fatal(err)
			}
		}
	}
	b.Shows("Log in")
	b.Await("document.activeElement.id === 'token'")
	b.Write("not-the-token-not-the-token-not-the-token")
	b.Press("Enter")
	b.Shows("The token is unknown.")
	refused := len(b.Complaints()) // the browser notes the 403 itself
	shot("login")
	b.TabTo("#token")
	b.Write(token)
	b.Press("Enter")
	b.Await("location.pathname === '/targets/prod' && document.querySelector('.who')")
	b.Shows("ann")
	b.Shows("for an approval: weir approve ")

	b.TabTo("#suspend > summary")
	b.Press("Enter")
	b.TabTo("input[name=reason]")
	b.Write("a <b>quiet</b> night")
	b.TabTo("select[name=for]")
	b.Press("ArrowDown")
	shot("suspend")
	b.TabTo("#suspend button")
	b.Press("Enter")
	b.Shows("ann suspended prod until")
	b.Shows("a <b>quiet</b> night")
	shot("suspended")
	if r := a.recorder.Read(); r.Lost != nil || len(r.Suspensions) != 1 || r.Suspensions[0].By != "ann" || r.Suspensions[0].Until.Sub(r.Suspensions[0].Since).Hours() != 4 {
		t.Fatalf("suspensions: %+v, %v", r.Suspensions, r.Lost)
	}

	b.TabTo("form[action='/actions/resume'] button")
	b.Press(" ")
	b.Shows("ann resumed prod.")
	b.Await("document.querySelector(\"form[action='/actions/approve']\")")
	// An approval is of the plan that was read, not of the one that took its place.
	w.repo.Write(overlay(map[string]string{"web": pool("web", "m5.xlarge", 7)}))
	revision := w.repo.Commit("another plan")
	b.Await("document.querySelector('#approve').disabled")
	b.Shows("The plan has changed")
	b.Go(a.PageURL() + "/targets/prod")
	b.Await("document.querySelector('#approve') && !document.querySelector('#approve').disabled")
	b.TabTo("form[action='/actions/approve'] button")
	b.Press("Enter")
	b.Shows("ann approved the plan")
	converged(t, a, revision, 1)
	b.Await("!document.querySelector(\"form[action='/actions/approve']\") && document.body.innerText.includes('1 / 1')")
	shot("approved")

	// Before the logout: a page that is refused is a complaint of the browser as well.
	if faults := b.Complaints()[refused:]; len(faults) > 0 {
		t.Errorf("the console has errors:\n%s", strings.Join(faults, "\n"))
	}
	b.TabTo("form[action='/logout'] button")
	b.Press("Enter")
	b.Await("location.pathname === '/login'")
	b.Go(a.PageURL() + "/targets/prod")
	b.Shows("Log in")
	var told []string
	for _, e := range a.current.Activity.Events() {
		if e.Kind == "command-given" {
			told = append(told, e.Text)
		}
	}
	if got := strings.Join(told, "\n"); len(told) != 3 || !strings.Contains(got, "ann approved the plan") || !strings.Contains(got, "of prod") {
		t.Errorf("events:\n%s", got)
	}
}
