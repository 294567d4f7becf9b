package deploy

import (
	"encoding/json"
	"flag"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"slices"
	"strings"
	"testing"

	"github.com/prometheus/client_golang/prometheus"
	"go.yaml.in/yaml/v3"

	"github.com/weir-gitops/weir/status/metrics"
)

// expression is a query of Prometheus, and where it stands.
type expression struct{ place, text string }

type panel struct {
	ID      int    `json:"id"`
	Type    string `json:"type"`
	Title   string `json:"title"`
	About   string `json:"description"`
	GridPos struct{ H, W, X, Y int }
	Targets []struct {
		Expr string `json:"expr"`
	} `json:"targets"`
	Datasource struct {
		UID string `json:"uid"`
	} `json:"datasource"`
}

type dashboard struct {
	Title       string  `json:"title"`
	UID         string  `json:"uid"`
	Panels      []panel `json:"panels"`
	Annotations struct {
		List []struct{ Name, Expr string }
	} `json:"annotations"`
	Templating struct {
		List []struct{ Name, Definition string }
	} `json:"templating"`
}

func readDashboard(t *testing.T) dashboard {
	t.Helper()
	text, err := os.ReadFile("grafana/weir.json")
	if err != nil {
		t.Fatal(err)
	}
	var d dashboard
	if err := json.Unmarshal(text, &d); err != nil {
		t.Fatal(err)
	}
	return d
}

func (d dashboard) expressions() (out []expression) {
	for _, p := range d.Panels {
		for _, q := range p.Targets {
			out = append(out, expression{"panel " + p.Title, q.Expr})
		}
	}
	for _, a := range d.Annotations.List {
		out = append(out, expression{"annotation " + a.Name, a.Expr})
	}
	return out
}

type rule struct {
	Alert       string            `yaml:"alert"`
	Expr        string            `yaml:"expr"`
	For         string            `yaml:"for"`
	Labels      map[string]string `yaml:"labels"`
	Annotations map[string]string `yaml:"annotations"`
}

func readAlerts(t *testing.T) (out []rule) {
	t.Helper()
	text, err := os.ReadFile("prometheus/alerts.yaml")
	if err != nil {
		t.Fatal(err)
	}
	var all struct {
		Groups []struct {
			Rules []rule `yaml:"rules"`
		} `yaml:"groups"`
	}
	if err := yaml.Unmarshal(text, &all); err != nil {
		t.Fatal(err)
	}
	for _, g := range all.Groups {
		out = append(out, g.Rules...)
	}
	return out
}

var (
	metricName = regexp.MustCompile(`\bweir_[a-z_]+`)
	selector   = regexp.MustCompile(`\b(weir_[a-z_]+)\{([^}]*)\}`)
	labelName  = regexp.MustCompile(`([a-z_]+)\s*(?:=~|!~|!=|=)`)
	grouping   = regexp.MustCompile(`\b(?:by|on|without|ignoring)\s*\(([^)]*)\)`)
	targetTags = []string{"instance", "job"} // which Prometheus adds
)

// unknown says what an expression names that weir does not have.
func unknown(defined map[string]metrics.Definition, expr string) (faults []string) {
	find := func(name string) (metrics.Definition, bool) {
		if d, ok := defined[name]; ok && d.Type != "histogram" {
			return d, true
		}
		for _, suffix := range []string{"_bucket", "_sum", "_count"} {
			base, cut := strings.CutSuffix(name, suffix)
			if d, ok := defined[base]; cut && ok && d.Type == "histogram" {
				if suffix == "_bucket" {
					d.Labels = append(slices.Clone(d.Labels), "le")
				}
				return d, true
			}
		}
		return metrics.Definition{}, false
	}
	labels := slices.Clone(targetTags)
	for _, name := range metricName.FindAllString(expr, -1) {
		d, ok := find(name)
		if !ok {
			faults = append(faults, "no metric "+name)
		}
		labels = append(labels, d.Labels...)
	}
	for _, m := range selector.FindAllStringSubmatch(expr, -1) {
		d, _ := find(m[1])
		for _, l := range labelName.FindAllStringSubmatch(m[2], -1) {
			if !slices.Contains(d.Labels, l[1]) && !slices.Contains(targetTags, l[1]) {
				faults = append(faults, m[1]+" has no label "+l[1])
			}
		}
	}
	for _, m := range grouping.FindAllStringSubmatch(expr, -1) {
		for l := range strings.SplitSeq(m[1], ",") {
			if l = strings.TrimSpace(l); l != "" && !slices.Contains(labels, l) {
				faults = append(faults, "no metric of it has the label "+l)
			}
		}
	}
	return faults
}

func definitions() map[string]metrics.Definition {
	out := map[string]metrics.Definition{}
	for _, d := range metrics.New(prometheus.NewRegistry(), "test").Definitions() {
		out[d.Name] = d
	}
	return out
}

// TestMetricsThatAreUsed: what the dashboard and the alerts name, weir has.
func TestMetricsThatAreUsed(t *testing.T) {
	defined := definitions()
	all := readDashboard(t).expressions()
	for _, r := range readAlerts(t) {
		all = append(all, expression{"alert " + r.Alert, r.Expr})
	}
	for _, v := range readDashboard(t).Templating.List {
		if v.Definition != "" {
			name, label, _ := strings.Cut(strings.TrimSuffix(strings.TrimPrefix(v.Definition, "label_values("), ")"), ", ")
			all = append(all, expression{"variable " + v.Name, "sum by (" + label + ") (" + name + ")"})
		}
	}
	if len(all) < 60 {
		t.Errorf("only %d expressions", len(all))
	}
	for _, e := range all {
		for _, fault := range unknown(defined, e.text) {
			t.Errorf("%s: %s: %s", e.place, fault, e.text)
		}
	}
}

// The check finds what is not there.
func TestUnknownMetrics(t *testing.T) {
	for expr, want := range map[string]string{
		`weir_nothing`:                     "no metric weir_nothing",
		`weir_pass_duration_seconds`:       "no metric weir_pass_duration_seconds",
		`weir_pools_count`:                 "no metric weir_pools_count",
		`weir_pools{pool="web"}`:           "weir_pools has no label pool",
		`sum by (source) (weir_pools)`:     "no metric of it has the label source",
		`sum by (target, le) (weir_pools)`: "no metric of it has the label le",
		`sum by (target) (weir_pools{phase="Running",instance="x"})`: "",
	} {
		if got := strings.Join(unknown(definitions(), expr), "; "); got != want {
			t.Errorf("%s: %q, want %q", expr, got, want)
		}
	}
}

// TestDashboard: panels have a place, a title, words, and the data source that is chosen.
func TestDashboard(t *testing.T) {
	d := readDashboard(t)
	ids, taken := map[int]bool{}, map[[2]int]string{}
	for _, p := range d.Panels {
		if ids[p.ID] || p.ID == 0 {
			t.Errorf("%s: id %d is there twice", p.Title, p.ID)
		}
		ids[p.ID] = true
		if p.Title == "" || p.GridPos.W == 0 || p.GridPos.X+p.GridPos.W > 24 {
			t.Errorf("panel %d %q at %+v", p.ID, p.Title, p.GridPos)
		}
		for x := range p.GridPos.W {
			for y := range p.GridPos.H {
				cell := [2]int{p.GridPos.X + x, p.GridPos.Y + y}
				if other := taken[cell]; other != "" {
					t.Fatalf("%s lies on %s", p.Title, other)
				}
				taken[cell] = p.Title
			}
		}
		if p.Type != "row" && (p.About == "" || len(p.Targets) == 0 || p.Datasource.UID != "${datasource}") {
			t.Errorf("%s says nothing, asks nothing, or asks somebody of its own: %+v", p.Title, p)
		}
	}
}

// TestAlerts: each says what is wrong and what to do, and has a test.
func TestAlerts(t *testing.T) {
	tests, err := os.ReadFile("prometheus/alerts_test.yaml")
	if err != nil {
		t.Fatal(err)
	}
	seen := map[string]bool{}
	for _, r := range readAlerts(t) {
		if seen[r.Alert] || !strings.HasPrefix(r.Alert, "Weir") {
			t.Errorf("alert %q", r.Alert)
		}
		seen[r.Alert] = true
		if s := r.Labels["severity"]; s != "page" && s != "ticket" {
			t.Errorf("%s has the severity %q", r.Alert, s)
		}
		if r.Annotations["summary"] == "" || !strings.HasSuffix(r.Annotations["description"], ".") && !strings.HasSuffix(r.Annotations["description"], "?") && !strings.HasSuffix(r.Annotations["description"], `".`) {
			t.Errorf("%s says %q, %q", r.Alert, r.Annotations["summary"], r.Annotations["description"])
		}
		// Once that it fires and once that it does not.
		fires := regexp.MustCompile(`alertname: ` + r.Alert + `\n\s+exp_alerts:`).Match(tests)
		rests := regexp.MustCompile(`alertname: ` + r.Alert + `\}`).Match(tests)
		if !fires || !rests {
			t.Errorf("%s has no test that it fires (%t) and that it does not (%t)", r.Alert, fires, rests)
		}
	}
	if len(seen) < 15 {
		t.Errorf("only %d alerts", len(seen))
	}
}

// TestPromtool has Prometheus's own tool judge alerts and expressions.
func TestPromtool(t *testing.T) {
	promtool, err := exec.LookPath("promtool")
	if err != nil {
		t.Skip("promtool is not installed; Debian has it in the package prometheus")
	}
	run := func(args ...string) {
		t.Helper()
		if out, err := exec.CommandContext(t.Context(), promtool, args...).CombinedOutput(); err != nil {
			t.Errorf("promtool %s: %v\n%s", strings.Join(args, " "), err, out)
		}
	}
	run("check", "rules", "prometheus/alerts.yaml")
	run("test", "rules", "prometheus/alerts_test.yaml")
	// Grafana puts values into the dashboard's expressions; rules of these parse as they do.
	type record struct {
		Record string `yaml:"record"`
		Expr   string `yaml:"expr"`
	}
	var rules []record
	for i, e := range readDashboard(t).expressions() {
		rules = append(rules, record{fmt.Sprintf("dashboard:%d", i), strings.NewReplacer("$__rate_interval", "5m", "$instance", ".*", "$target", "a|b").Replace(e.text)})
	}
	text, err := yaml.Marshal(map[string]any{"groups": []any{map[string]any{"name": "dashboard", "rules": rules}}})
	if err != nil {
		t.Fatal(err)
	}
	file := filepath.Join(t.TempDir(), "rules.yaml")
	if err := os.WriteFile(file, text, 0o600); err != nil {
		t.Fatal(err)
	}
	run("check", "rules", file)
}

var update = flag.Bool("update", false, "write METRICS.md anew")

// TestMetricsReference: the list that is published is that of the program.
func TestMetricsReference(t *testing.T) {
	var want strings.Builder
	want.WriteString("# Metrics\n\nWhat weir serves at `/metrics`, beside Go's own metrics of the process. The number of series follows from the configuration and the program: " +
		"no label holds the name of a pool, a revision or a message.\n\nThis list is generated: `go test ./deploy -run MetricsReference -update`.\n\n" +
		"| Metric | Type | Labels | Meaning |\n| --- | --- | --- | --- |\n")
	for _, d := range metrics.New(prometheus.NewRegistry(), "test").Definitions() {
		fmt.Fprintf(&want, "| `%s` | %s | %s | %s |\n", d.Name, d.Type, strings.Join(d.Labels, ", "), d.Help)
	}
	const file = "prometheus/METRICS.md"
	if *update {
		if err := os.WriteFile(file, []byte(want.String()), 0o644); err != nil { //nolint:gosec // it is published
			t.Fatal(err)
		}
	}
	if got, err := os.ReadFile(file); err != nil || string(got) != want.String() {
		t.Errorf("%s is not what weir has: run the test with -update (%v)", file, err)
	}
}
