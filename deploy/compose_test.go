package deploy

import (
	"context"
	"errors"
	"maps"
	"net"
	"net/url"
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"slices"
	"strings"
	"testing"
	"time"

	"go.etcd.io/etcd/server/v3/embed"
	"go.yaml.in/yaml/v3"

	"github.com/weir-gitops/weir/reconciler/coord/etcd"
	"github.com/weir-gitops/weir/reconciler/state/files"
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
	NetworkMode string            `yaml:"network_mode"`
	Healthcheck *struct {
		Test        []string `yaml:"test"`
		Interval    string   `yaml:"interval"`
		Timeout     string   `yaml:"timeout"`
		StartPeriod string   `yaml:"start_period"`
		Retries     int      `yaml:"retries"`
	} `yaml:"healthcheck"`
}

// composition is a file of Compose. Beginnings are parts that its services share.
type composition struct {
	Name      string              `yaml:"name"`
	Beginning service             `yaml:"x-weir"`
	Services  map[string]service  `yaml:"services"`
	Volumes   map[string]struct{} `yaml:"volumes"`
}

func readComposition(t *testing.T, name string) composition {
	t.Helper()
	f, err := os.Open("compose/" + name)
	if err != nil {
		t.Fatal(err)
	}
	defer func() { _ = f.Close() }() // it was read
	var c composition
	dec := yaml.NewDecoder(f)
	dec.KnownFields(true)
	if err := dec.Decode(&c); err != nil {
		t.Fatal(err)
	}
	return c
}

// over is a composition with another one over it, as Compose merges them: what is at a place
// of a container is mounted there once.
func (c composition) over(next composition) composition {
	out := composition{Name: c.Name, Services: maps.Clone(c.Services), Volumes: maps.Clone(c.Volumes)}
	maps.Copy(out.Volumes, next.Volumes)
	for name, s := range next.Services {
		below := c.Services[name]
		s.Ports = append(slices.Clone(below.Ports), s.Ports...)
		for _, v := range below.Volumes {
			if !slices.ContainsFunc(s.Volumes, func(other string) bool { return mountedAt(other) == mountedAt(v) }) {
				s.Volumes = append(s.Volumes, v)
			}
		}
		out.Services[name] = s
	}
	return out
}

func mountedAt(volume string) string { return strings.Split(volume, ":")[1] }

// TestCompose: services, volumes and files name each other as they are called, and
// nothing is open to anybody but this machine.
func TestCompose(t *testing.T) {
	c := readComposition(t, "compose.yaml")
	c.check(t)
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

// check looks at what services say of each other, of volumes and of files.
func (c composition) check(t *testing.T) {
	t.Helper()
	used, open := map[string]bool{}, map[string]bool{}
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
			at := p[:strings.LastIndexByte(p, ':')]
			if !strings.HasPrefix(p, "127.0.0.1:") || open[at] {
				t.Errorf("%s is open to everybody, or to who wants another one, at %s", name, p)
			}
			open[at] = true
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
}

// TestComposeOfSeveral: over the trial three weirs share an etcd that takes TLS alone, by
// certificates that the script makes: a real etcd, started with what the file says, lets the
// weirs in and nobody without a certificate.
func TestComposeOfSeveral(t *testing.T) {
	several := readComposition(t, "several.yaml")
	c := readComposition(t, "compose.yaml").over(several)
	c.check(t)
	hosts, states := map[string]bool{}, map[string]bool{}
	for _, name := range []string{"weir", "weir-2", "weir-3"} {
		s := c.Services[name]
		hosts[s.Hostname], states[s.Volumes[0]] = true, true
		if s.DependsOn["etcd"].Condition != "service_healthy" || !maps.Equal(s.Environment, c.Services["weir"].Environment) {
			t.Errorf("%s: %+v", name, s)
		}
	}
	if len(hosts) != 3 || len(states) != 3 {
		t.Errorf("names %v and state directories %v", hosts, states)
	}
	alone, err := os.ReadFile("compose/weir.yaml")
	if err != nil {
		t.Fatal(err)
	}
	text, err := os.ReadFile("compose/several.weir.yaml")
	if err != nil {
		t.Fatal(err)
	}
	section, same := strings.CutPrefix(string(text), string(alone))
	if !same {
		t.Error("several.weir.yaml is weir.yaml with a section coordination")
	}
	var config struct {
		Coordination struct {
			KeysFile string `yaml:"keysFile"`
			Etcd     struct {
				Endpoints                 []string
				CertFile, KeyFile, CAFile string
			}
		}
	}
	if err := yaml.Unmarshal([]byte(lowerKeys(section)), &config); err != nil {
		t.Fatal(err)
	}

	// The script, twice: what is there stays.
	dir := t.TempDir()
	script := exec.Command("compose/certificates.sh")
	for name, volume := range c.Services["certificates"].Environment {
		at := filepath.Join(dir, volume)
		if err := os.MkdirAll(at, 0o700); err != nil {
			t.Fatal(err)
		}
		script.Env = append(script.Env, name+"="+at)
	}
	if _, err := exec.LookPath("openssl"); err != nil {
		t.Skip("openssl is not installed")
	}
	script.Env = append(script.Env, "PATH="+os.Getenv("PATH"))
	made := func() string {
		again := *script
		if out, err := again.CombinedOutput(); err != nil {
			t.Fatalf("%v\n%s", err, out)
		}
		all := ""
		for _, name := range []string{"etcd/etcd.pem", "etcd/etcd-key.pem", "weir/weir.pem", "weir/keys", "weir/ca.pem"} {
			data, err := os.ReadFile(filepath.Join(dir, name))
			if err != nil {
				t.Fatal(err)
			}
			all += string(data)
		}
		return all
	}
	if first, again := made(), made(); first != again {
		t.Error("it makes again what is there")
	}

	// etcd by the flags of its command, with the volume in place of what it is mounted as.
	flags := map[string]string{}
	for _, f := range c.Services["etcd"].Command[1:] {
		name, value, _ := strings.Cut(strings.TrimPrefix(f, "--"), "=")
		flags[name] = strings.Replace(value, "/certificates/", filepath.Join(dir, "etcd")+"/", 1)
	}
	conf := embed.NewConfig()
	conf.Dir, conf.LogLevel, conf.LogOutputs = t.TempDir(), "fatal", []string{"/dev/null"}
	conf.ListenClientUrls, conf.AdvertiseClientUrls = urls(t, flags["listen-client-urls"]), urls(t, flags["advertise-client-urls"])
	conf.ListenPeerUrls = urls(t, "http://127.0.0.1:0")
	conf.ListenClientUrls[0].Host = "127.0.0.1:0"
	conf.ClientTLSInfo.CertFile, conf.ClientTLSInfo.KeyFile, conf.ClientTLSInfo.TrustedCAFile = flags["cert-file"], flags["key-file"], flags["trusted-ca-file"]
	conf.ClientTLSInfo.ClientCertAuth = flags["client-cert-auth"] == "true"
	server, err := embed.StartEtcd(conf)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(server.Close)
	<-server.Server.ReadyNotify()
	_, port, err := net.SplitHostPort(server.Clients[0].Addr().String())
	if err != nil {
		t.Fatal(err)
	}
	e := config.Coordination.Etcd
	if len(e.Endpoints) != 1 || e.Endpoints[0] != flags["advertise-client-urls"] || !strings.HasPrefix(e.Endpoints[0], "https://etcd:") {
		t.Errorf("weirs reach %v, and etcd is at %s", e.Endpoints, flags["advertise-client-urls"])
	}
	inVolume := func(file string) string {
		return strings.Replace(file, "/etc/weir/coordination/", filepath.Join(dir, "weir")+"/", 1)
	}
	open := func(cert, key string, within time.Duration) error {
		ctx, cancel := context.WithTimeout(t.Context(), within)
		defer cancel()
		store, err := etcd.Open(ctx, etcd.Config{Instance: "trial", Endpoints: []string{"https://localhost:" + port}, CertFile: cert, KeyFile: key, CAFile: inVolume(e.CAFile)})
		if err != nil {
			return err
		}
		_, err = store.Poll(ctx)
		return errors.Join(err, store.Close())
	}
	if err := open(inVolume(e.CertFile), inVolume(e.KeyFile), time.Minute); err != nil {
		t.Errorf("a weir: %v", err)
	}
	if open("", "", 3*time.Second) == nil {
		t.Error("somebody without a certificate is let in")
	}
	if keys, err := files.ReadKeys(inVolume(config.Coordination.KeysFile)); err != nil || len(keys) != 1 {
		t.Errorf("keys: %v", err)
	}
}

// lowerKeys writes keys as yaml.v3 expects them of fields without a name.
func lowerKeys(text string) string {
	return regexp.MustCompile(`(?m)^\s*(endpoints|certFile|keyFile|caFile):`).ReplaceAllStringFunc(text, strings.ToLower)
}

func urls(t *testing.T, text string) []url.URL {
	t.Helper()
	u, err := url.Parse(text)
	if err != nil {
		t.Fatal(err)
	}
	return []url.URL{*u}
}
