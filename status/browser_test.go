package status

import (
	"context"
	"flag"
	"fmt"
	"net/http"
	"net/http/httptest"
	"net/http/httputil"
	neturl "net/url"
	"os/exec"
	"path/filepath"
	"regexp"
	"strings"
	"testing"
	"time"
)

var screenshots = flag.String("screenshots", "", "write screenshots of the page to this directory")

// chromium runs a headless browser, or skips the test where there is none.
func chromium(t *testing.T, args ...string) string {
	t.Helper()
	binary := ""
	for _, name := range []string{"chromium", "chromium-browser", "google-chrome"} {
		if path, err := exec.LookPath(name); err == nil {
			binary = path
			break
		}
	}
	if binary == "" {
		t.Skip("no Chromium on this machine")
	}
	ctx, cancel := context.WithTimeout(t.Context(), 60*time.Second)
	defer cancel()
	cmd := exec.CommandContext(ctx, binary, append([]string{
		"--headless", "--no-sandbox", "--disable-gpu", "--disable-quic", "--no-first-run", "--disable-background-networking",
		"--disable-component-update", "--disable-sync", "--hide-scrollbars", "--user-data-dir=" + t.TempDir(),
	}, args...)...)
	var stderr strings.Builder
	cmd.Stderr = &stderr
	out, err := cmd.Output()
	if err != nil {
		t.Fatalf("run browser: %v\n%s", err, stderr.String())
	}
	return string(out)
}

func serve(t *testing.T, b *Board) string {
	t.Helper()
	srv := httptest.NewServer(b.Handler(HandlerOptions{Metrics: http.NotFoundHandler()}))
	t.Cleanup(srv.Close)
	return srv.URL
}

func TestBrowserShowsPools(t *testing.T) {
	if testing.Short() {
		t.Skip("a browser takes seconds")
	}
	dom := chromium(t, "--dump-dom", serve(t, fleet())+"/")
	text := regexp.MustCompile(`<[^>]*>`).ReplaceAllString(dom, " ")
	for _, want := range []string{"prod-us", "batch-spot", "Running", "37 %", "awsLaunchTemplate.instanceTyp: unknown field", "overlays/staging/pool.yaml:12:5"} {
		if !strings.Contains(text, want) {
			t.Errorf("the page as a browser shows it lacks %q", want)
		}
	}
}

// TestBrowserRefreshes proves that the security policy lets the page's own
// script run and that it shows what is new.
func TestBrowserRefreshes(t *testing.T) {
	if testing.Short() {
		t.Skip("a browser takes seconds")
	}
	b := NewBoard(BoardOptions{Now: func() time.Time { return noon }})
	b.Configure(nil, nil)
	page := b.Handler(HandlerOptions{})
	srv := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		page.ServeHTTP(w, r)
		if r.URL.Path == "/" {
			b.Report(context.Background(), report("prod-eu", pool("prod-eu", "seen-later")))
		}
	}))
	t.Cleanup(srv.Close)
	dom := chromium(t, "--dump-dom", "--virtual-time-budget=9000", srv.URL+"/")
	if !strings.Contains(dom, "seen-later") {
		t.Error("the page did not show the pool of a later pass")
	}
}

// phone serves a page in a frame as wide as a phone: a headless window has a
// minimum width. The copy goes without the headers that forbid framing.
func phone(t *testing.T, url string, height int) string {
	t.Helper()
	target, err := neturl.Parse(url)
	if err != nil {
		t.Fatal(err)
	}
	proxy := httputil.NewSingleHostReverseProxy(&neturl.URL{Scheme: target.Scheme, Host: target.Host})
	proxy.ModifyResponse = func(r *http.Response) error {
		r.Header.Del("Content-Security-Policy")
		r.Header.Del("X-Frame-Options")
		return nil
	}
	mux := http.NewServeMux()
	mux.Handle("/", proxy)
	mux.HandleFunc("/phone", func(w http.ResponseWriter, _ *http.Request) {
		w.Header().Set("Content-Type", "text/html")
		_, _ = fmt.Fprintf(w, `<!doctype html><body style="margin:0"><iframe src="%s" style="width:375px;height:%dpx;border:0">`, target.Path, height)
	})
	srv := httptest.NewServer(mux)
	t.Cleanup(srv.Close)
	return srv.URL + "/phone"
}

func TestScreenshots(t *testing.T) {
	if *screenshots == "" {
		t.Skip("no -screenshots directory")
	}
	url := serve(t, fleet())
	empty := NewBoard(BoardOptions{Instance: "demo", Now: func() time.Time { return noon }})
	empty.Configure(nil, nil)
	calm := NewBoard(BoardOptions{Instance: "weir", Now: func() time.Time { return noon }})
	calm.Configure([]Source{{Name: "demo", URL: "/tmp/weir-demo/fleet.git", Ref: "branch main"}}, nil)
	calm.Report(t.Context(), report("eks", pool("eks", "web", managed)))
	calm.Report(t.Context(), report("spot", pool("spot", "batch")))
	emptyURL, calmURL := serve(t, empty), serve(t, calm)
	for name, args := range map[string][]string{
		"index-light":  {"--window-size=1280,1900", url + "/"},
		"index-dark":   {"--window-size=1280,1900", "--blink-settings=preferredColorScheme=0", url + "/"},
		"index-phone":  {"--window-size=500,3000", phone(t, url+"/", 3000)},
		"target-light": {"--window-size=1280,1300", url + "/targets/prod-us"},
		"target-dark":  {"--window-size=1280,1300", "--blink-settings=preferredColorScheme=0", url + "/targets/dev"},
		"target-phone": {"--window-size=500,1600", phone(t, url+"/targets/prod-us", 1600)},
		"empty":        {"--window-size=1280,800", emptyURL + "/"},
		"calm":         {"--window-size=1280,1000", calmURL + "/"},
		"missing":      {"--window-size=1280,400", url + "/targets/none"},
	} {
		chromium(t, append([]string{"--screenshot=" + filepath.Join(*screenshots, name+".png")}, args...)...)
	}
}
