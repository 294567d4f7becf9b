package prometheus_test

import (
	"bytes"
	"context"
	"encoding/pem"
	"fmt"
	"io"
	"math"
	"net"
	"net/http"
	"net/http/httptest"
	"net/http/httputil"
	"net/url"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strings"
	"sync/atomic"
	"testing"
	"time"

	client "github.com/prometheus/client_golang/prometheus"
	"github.com/prometheus/client_golang/prometheus/promhttp"

	"github.com/weir-gitops/weir/reconciler/rollout"
	"github.com/weir-gitops/weir/reconciler/rollout/gate"
	"github.com/weir-gitops/weir/reconciler/rollout/prometheus"
	"github.com/weir-gitops/weir/render/intent"
)

// patience is how long a real server may take for what it does in a second.
const patience = time.Minute

func write(t *testing.T, name, text string) string {
	t.Helper()
	file := filepath.Join(t.TempDir(), name)
	if err := os.WriteFile(file, []byte(text), 0o600); err != nil {
		t.Fatal(err)
	}
	return file
}

// server starts a real Prometheus that scrapes a target each 200 ms, and returns its address.
func server(t *testing.T, target string) string {
	t.Helper()
	if _, err := exec.LookPath("prometheus"); err != nil {
		t.Skip("prometheus is not installed (Debian's package prometheus): nothing is asked of a real one")
	}
	l, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	address := l.Addr().String()
	_ = l.Close() // the server takes its place
	config := write(t, "prometheus.yml", fmt.Sprintf("global: {scrape_interval: 200ms, scrape_timeout: 200ms, evaluation_interval: 1s}\nscrape_configs:\n- {job_name: app, static_configs: [{targets: [%q]}]}\n", target))
	var log bytes.Buffer
	cmd := exec.Command("prometheus", "--config.file="+config, "--storage.tsdb.path="+t.TempDir(), "--web.listen-address="+address)
	cmd.Stdout, cmd.Stderr = &log, &log
	if err := cmd.Start(); err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() {
		_ = cmd.Process.Kill() // it keeps nothing
		_ = cmd.Wait()
		if t.Failed() {
			t.Logf("%s", log.String())
		}
	})
	for end := time.Now().Add(patience); ; time.Sleep(50 * time.Millisecond) {
		if resp, err := http.Get("http://" + address + "/-/ready"); err == nil {
			_ = resp.Body.Close() // nothing is read
			if resp.StatusCode == http.StatusOK {
				return "http://" + address
			}
		}
		if time.Now().After(end) {
			t.Fatal("prometheus did not become ready")
		}
	}
}

// TestARealServer holds gates against data that a real Prometheus scraped: a share of
// errors that rises, falls, and goes away.
func TestARealServer(t *testing.T) {
	registry := client.NewRegistry()
	share := client.NewGaugeVec(client.GaugeOpts{Name: "errors_share"}, []string{"pool"})
	registry.MustRegister(share)
	share.WithLabelValues("web").Set(0.01)
	share.WithLabelValues("db").Set(0.02)
	app := httptest.NewServer(promhttp.HandlerFor(registry, promhttp.HandlerOpts{}))
	defer app.Close()
	// In front of it stands who asks for a token, as Prometheus itself knows none.
	real, err := url.Parse(server(t, strings.TrimPrefix(app.URL, "http://")))
	if err != nil {
		t.Fatal(err)
	}
	proxy := httputil.NewSingleHostReverseProxy(real)
	door := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		if r.Header.Get("Authorization") != "Bearer s3cret-token" {
			http.Error(w, "who are you, "+r.Header.Get("Authorization"), http.StatusUnauthorized)
			return
		}
		proxy.ServeHTTP(w, r)
	}))
	defer door.Close()
	token := write(t, "token", "s3cret-token\n")
	c, err := prometheus.Open(prometheus.Options{URL: door.URL, TokenFile: token})
	if err != nil {
		t.Fatal(err)
	}
	defer c.Close()

	now := time.Now()
	asker := &gate.Asker{Provider: func(name string) gate.Provider {
		if name == "main" {
			return c
		}
		return nil
	}, Now: func() time.Time { return now }}
	ask := func(query string, least, most *float64) rollout.Answer {
		t.Helper()
		now = now.Add(time.Hour) // nothing is known any more
		q := rollout.Ask{Rollout: "fleet/nodes", Gate: intent.RolloutGate{Name: "errors", Prometheus: &intent.PrometheusGate{Provider: "main", Query: query, Min: least, Max: most}}, Since: now}
		a := asker.Answers(t.Context(), []rollout.Ask{q}, nil)[q.Key()]
		if !a.At.Equal(now) {
			t.Errorf("the answer is of %s, not of %s", a.At, now)
		}
		return a
	}
	until := func(query string, most float64, want rollout.Verdict, says string) {
		t.Helper()
		for end := time.Now().Add(patience); ; time.Sleep(100 * time.Millisecond) {
			a := ask(query, nil, &most)
			if a.Verdict == want && strings.Contains(a.What, says) {
				return
			}
			if time.Now().After(end) {
				t.Fatalf("%s is %+v, want %s: %s", query, a, want, says)
			}
		}
	}
	until("errors_share", 0.05, rollout.Pass, `pool="db"`)
	until("max(errors_share)", 0.05, rollout.Pass, "0.02, at most 0.05")
	until("scalar(max(errors_share))", 0.05, rollout.Pass, "0.02, at most 0.05")
	share.WithLabelValues("web").Set(0.5)
	until("errors_share", 0.05, rollout.Fail, `0.5 of errors_share{`)
	until("errors_share > 0.05", 0.05, rollout.Fail, `pool="web"`)
	share.WithLabelValues("web").Set(0)
	until("errors_share", 0.05, rollout.Pass, `pool="web"`)
	until("count(errors_share > 0.05) or vector(0)", 0, rollout.Pass, "0, at most 0")
	until("errors_share > 0.05", 0.05, rollout.Unknown, "no value")
	until("errors_share / (errors_share * 0)", 1, rollout.Fail, "+Inf")
	until("(errors_share - errors_share) / 0", 1, rollout.Unknown, "NaN")
	until("sum(rate(no_such_metric[5m]))", 1, rollout.Unknown, "no value")
	until("errors_share[1m]", 1, rollout.Unknown, "has a matrix and neither")
	until(`"text"`, 1, rollout.Unknown, "string")
	until("sum(", 1, rollout.Unknown, "refuses the query")
	app.Close() // nothing is scraped any more: within Prometheus's staleness there is no value
	until("errors_share", 0.05, rollout.Unknown, "no value")
	until("up", 0, rollout.Pass, "at most 0")

	if err := os.WriteFile(token, []byte("other-token"), 0o600); err != nil {
		t.Fatal(err)
	}
	a := ask("up", nil, new(float64))
	if a.Verdict != rollout.Unknown || strings.Contains(a.What, "token") {
		t.Errorf("with another token: %+v", a)
	}
	_ = os.Remove(token)
	if a := ask("up", nil, new(float64)); a.Verdict != rollout.Unknown || !strings.Contains(a.What, "read the tokenFile") {
		t.Errorf("without the file: %+v", a)
	}
}

// TestWhatAServerMayNotDo: whatever answers, the query ends, in a sentence without a secret.
func TestWhatAServerMayNotDo(t *testing.T) {
	var elsewhere atomic.Int64
	other := httptest.NewServer(http.HandlerFunc(func(http.ResponseWriter, *http.Request) { elsewhere.Add(1) }))
	defer other.Close()
	vector := func(w io.Writer, samples ...string) {
		fmt.Fprintf(w, `{"status":"success","data":{"resultType":"vector","result":[%s]}}`, strings.Join(samples, ","))
	}
	for name, c := range map[string]struct {
		answer func(w http.ResponseWriter, r *http.Request)
		want   string
	}{
		"leads elsewhere": {func(w http.ResponseWriter, r *http.Request) {
			http.Redirect(w, r, other.URL, http.StatusTemporaryRedirect)
		}, "redirects to"},
		"floods": {func(w http.ResponseWriter, _ *http.Request) {
			for range 64 {
				if _, err := w.Write(bytes.Repeat([]byte(" "), 1<<20)); err != nil {
					return
				}
			}
		}, "more than 4 MiB"},
		"too many values": {func(w http.ResponseWriter, _ *http.Request) {
			vector(w, slices.Repeat([]string{`{"metric":{},"value":[1,"1"]}`}, 10001)...)
		}, "10001 values, more than 10000"},
		"repeats the secret": {func(w http.ResponseWriter, r *http.Request) {
			w.WriteHeader(http.StatusUnprocessableEntity)
			user, password, _ := r.BasicAuth()
			fmt.Fprintf(w, `{"status":"error","errorType":"execution","error":"%s %s %s"}`, user, password, r.Header.Get("Authorization"))
		}, "(secret)"},
		"no JSON":   {func(w http.ResponseWriter, _ *http.Request) { fmt.Fprint(w, "<html>") }, "invalid character"},
		"nothing":   {func(http.ResponseWriter, *http.Request) {}, "127.0.0.1"},
		"no data":   {func(w http.ResponseWriter, _ *http.Request) { fmt.Fprint(w, `{"status":"success","data":null}`) }, "no result"},
		"a failure": {func(w http.ResponseWriter, _ *http.Request) { w.WriteHeader(http.StatusBadGateway) }, "502"},
		"a part is missing": {func(w http.ResponseWriter, _ *http.Request) {
			fmt.Fprint(w, `{"status":"success","warnings":["store-2 is away"],"data":{"resultType":"vector","result":[]}}`)
		}, "incomplete: store-2 is away"},
		"a histogram": {func(w http.ResponseWriter, _ *http.Request) {
			vector(w, `{"metric":{},"histogram":[1,{"count":"1","sum":"1","buckets":[[0,"0","1","1"]]}]}`)
		}, "histograms"},
		"hides": {func(w http.ResponseWriter, _ *http.Request) {
			w.WriteHeader(http.StatusBadRequest)
			fmt.Fprintf(w, `{"status":"error","errorType":"bad_data","error":"%s"}`, strings.Repeat("x", 5000))
		}, "…"},
	} {
		t.Run(name, func(t *testing.T) {
			hs := httptest.NewServer(http.HandlerFunc(c.answer))
			defer hs.Close()
			client, err := prometheus.Open(prometheus.Options{URL: hs.URL + "/tenant", Username: "weir", PasswordFile: write(t, "password", "hunter2\n")})
			if err != nil {
				t.Fatal(err)
			}
			defer client.Close()
			_, err = client.Query(t.Context(), "up")
			if err == nil || !strings.Contains(err.Error(), c.want) || len(err.Error()) > 400 || strings.Contains(err.Error(), "hunter2") || strings.Contains(err.Error(), "d2Vpcjpo") {
				t.Errorf("%v, want %s", err, c.want)
			}
		})
	}
	if elsewhere.Load() > 0 {
		t.Error("a redirect was followed")
	}
}

func TestHowAServerIsReached(t *testing.T) {
	var asked atomic.Pointer[http.Request]
	hs := httptest.NewTLSServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		if r.Method == http.MethodPost { // a read-only door
			w.WriteHeader(http.StatusMethodNotAllowed)
			return
		}
		asked.Store(r)
		fmt.Fprint(w, `{"status":"success","data":{"resultType":"vector","result":[{"metric":{"pool":"web"},"value":[1,"NaN"]}]}}`)
	}))
	defer hs.Close()
	open := func(o prometheus.Options) (*prometheus.Client, error) {
		o.URL = hs.URL + "/tenant/"
		return prometheus.Open(o)
	}
	stranger, err := open(prometheus.Options{})
	if err != nil {
		t.Fatal(err)
	}
	defer stranger.Close()
	if _, err := stranger.Query(t.Context(), "up"); err == nil || !strings.Contains(err.Error(), "certificate is not trusted") {
		t.Errorf("without its CA: %v", err)
	}
	ca := write(t, "ca.pem", pemOf(hs))
	c, err := open(prometheus.Options{CAFile: ca, Username: "weir", PasswordFile: write(t, "password", "p")})
	if err != nil {
		t.Fatal(err)
	}
	defer c.Close()
	got, err := c.Query(t.Context(), `up{a="b"}`)
	if err != nil || len(got) != 1 || !math.IsNaN(got[0].Value) || got[0].Of != `{pool="web"}` {
		t.Errorf("%+v, %v", got, err)
	}
	r := asked.Load()
	if user, password, _ := r.BasicAuth(); r.URL.Path != "/tenant/api/v1/query" || r.URL.Query().Get("query") != `up{a="b"}` || r.URL.Query().Has("time") || user != "weir" || password != "p" {
		t.Errorf("asked %s %v", r.URL, r.Header)
	}
	ended, cancel := context.WithCancel(t.Context())
	cancel()
	if _, err := c.Query(ended, "up"); err == nil {
		t.Error("a query that was given up has an answer")
	}
	for _, o := range []prometheus.Options{{URL: "prometheus:9090"}, {URL: "ftp://h"}, {URL: "https://u:p@h"}, {URL: "https://h?x=1"}, {URL: "https://h", CAFile: "/no/such/file"}, {URL: "https://h", CAFile: write(t, "ca.pem", "none")}} {
		if _, err := prometheus.Open(o); err == nil || strings.Contains(err.Error(), "u:p") {
			t.Errorf("%+v: %v", o, err)
		}
	}
}

func pemOf(hs *httptest.Server) string {
	return string(pem.EncodeToMemory(&pem.Block{Type: "CERTIFICATE", Bytes: hs.Certificate().Raw}))
}
