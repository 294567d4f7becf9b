package deploy

import (
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"go.yaml.in/yaml/v3"
)

// service is what the Compose specification says of one, as far as it is used here:
// another key is an error.
type service struct {
	Image string `yaml:"image"`
	Build *struct {
		Context    string `yaml:"context"`
		Dockerfile string `yaml:"dockerfile"`
	} `yaml:"build"`
	Restart   string `yaml:"restart"`
	Hostname  string `yaml:"hostname"`
	DependsOn map[string]struct {
		Condition string `yaml:"condition"`
	} `yaml:"depends_on"`
	Entrypoint  []string          `yaml:"entrypoint"`
	Command     []string          `yaml:"command"`
	Environment map[string]string `yaml:"environment"`
	Volumes     []string          `yaml:"volumes"`
	Ports       []string          `yaml:"ports"`
	ReadOnly    bool              `yaml:"read_only"`
	CapDrop     []string          `yaml:"cap_drop"`
	SecurityOpt []string          `yaml:"security_opt"`
	Healthcheck *struct {
		Test        []string `yaml:"test"`
		Interval    string   `yaml:"interval"`
		Timeout     string   `yaml:"timeout"`
		StartPeriod string   `yaml:"start_period"`
		Retries     int      `yaml:"retries"`
	} `yaml:"healthcheck"`
}

// TestCompose: services, volumes and files name each other as they are called, and
// nothing is open to anybody but this machine.
func TestCompose(t *testing.T) {
	f, err := os.Open("compose/compose.yaml")
	if err != nil {
		t.Fatal(err)
	}
	defer func() { _ = f.Close() }() // it was read
	var c struct {
		Name     string              `yaml:"name"`
		Services map[string]service  `yaml:"services"`
		Volumes  map[string]struct{} `yaml:"volumes"`
	}
	dec := yaml.NewDecoder(f)
	dec.KnownFields(true)
	if err := dec.Decode(&c); err != nil {
		t.Fatal(err)
	}
	used := map[string]bool{}
	for name, s := range c.Services {
		if s.Image == "" || strings.HasSuffix(s.Image, ":latest") || !strings.Contains(s.Image, ":") {
			t.Errorf("%s runs the image %q", name, s.Image)
		}
		if s.Build != nil {
			if _, err := os.Stat(filepath.Join("compose", s.Build.Context, s.Build.Dockerfile)); err != nil {
				t.Errorf("%s: %v", name, err)
			}
			if _, err := os.Stat(filepath.Join("compose", s.Build.Context, "go.mod")); err != nil {
				t.Errorf("%s: %v", name, err)
			}
			if !s.ReadOnly || !slices.Equal(s.CapDrop, []string{"ALL"}) || !slices.Contains(s.SecurityOpt, "no-new-privileges:true") {
				t.Errorf("%s may do more than it needs", name)
			}
		}
		for other, d := range s.DependsOn {
			on, ok := c.Services[other]
			healthy := d.Condition == "service_healthy"
			if !ok || !slices.Contains([]string{"service_started", "service_healthy", "service_completed_successfully"}, d.Condition) || healthy && on.Healthcheck == nil {
				t.Errorf("%s waits for %s, %s", name, other, d.Condition)
			}
		}
		for _, p := range s.Ports {
			if !strings.HasPrefix(p, "127.0.0.1:") {
				t.Errorf("%s is open to everybody at %s", name, p)
			}
		}
		for _, v := range s.Volumes {
			from, to, _ := strings.Cut(v, ":")
			if !strings.HasPrefix(from, ".") {
				used[from] = true
				if _, ok := c.Volumes[from]; !ok {
					t.Errorf("%s uses the volume %s, which is not declared", name, from)
				}
				continue
			}
			if _, err := os.Stat(filepath.Join("compose", from)); err != nil || !strings.HasSuffix(to, ":ro") {
				t.Errorf("%s mounts %s at %s: %v", name, from, to, err)
			}
		}
		if h := s.Healthcheck; h != nil && (len(h.Test) < 2 || h.Test[0] != "CMD") {
			t.Errorf("%s: health by %q", name, h.Test)
		}
	}
	for v := range c.Volumes {
		if !used[v] {
			t.Errorf("nobody uses the volume %s", v)
		}
	}
	// Addresses inside of it.
	config, err := os.ReadFile("compose/weir.yaml")
	if err != nil {
		t.Fatal(err)
	}
	for _, want := range []string{"http://gitea:3000/you/fleet.git", "http://aws:4566", "listen: 0.0.0.0:8344", "/etc/weir/credentials/"} {
		if !strings.Contains(string(config), want) {
			t.Errorf("weir's configuration lacks %s", want)
		}
	}
	if e := c.Services["seed"].Environment; e["WEIR_URL"] != "http://weir:8344" || e["GITEA_URL"] != "http://gitea:3000" {
		t.Errorf("the seed's environment is %v", e)
	}
	if hooks := c.Services["gitea"].Environment["GITEA__webhook__ALLOWED_HOST_LIST"]; hooks != "weir" {
		t.Errorf("Gitea sends webhooks to %q", hooks)
	}
	if mode, err := os.Stat("compose/seed.sh"); err != nil || mode.Mode()&0o111 == 0 {
		t.Errorf("the seed cannot be run: %v", err)
	}
}
