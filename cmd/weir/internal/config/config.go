// Package config reads the configuration of weir: one YAML file outside of all repositories that weir
// follows, so that no commit can extend weir's permissions.
//
// Load decodes the file strictly, sets the defaults and validates everything. It reports all faults at
// once, with file, line and column. If there is an error, the whole configuration is rejected. The
// configuration never contains secrets, only the names of files with secrets.
package config

import (
	"cmp"
	"fmt"
	"net"
	"os"
	"path/filepath"
	"strings"
	"time"

	"github.com/weir-gitops/weir/reconciler/plan/model"
	"github.com/weir-gitops/weir/reconciler/targetspec"
	"github.com/weir-gitops/weir/render/diag"
	"github.com/weir-gitops/weir/status/access"
	"github.com/weir-gitops/weir/status/forge"
	"github.com/weir-gitops/weir/status/pulls"
)

// APIVersion and Kind are the required header of a configuration.
const (
	APIVersion = "weir.dev/v1alpha1"
	Kind       = "Config"
)

// EmbeddedEndpoint is the value of aws.endpoint that starts the embedded AWS in the daemon.
const EmbeddedEndpoint = "embedded"

// Config is a whole configuration. A loaded one holds every default and only
// absolute paths.
type Config struct {
	// APIVersion is the version of the format of this file.
	APIVersion string `yaml:"apiVersion"`
	// Kind is the kind of this file.
	Kind string `yaml:"kind"`
	// Instance names this weir. It is the value of the tag weir.dev/owner on every resource
	// that weir creates, and the first part of the contexts of commit statuses.
	Instance string `yaml:"instance"`
	// StateDir holds what must survive a restart, such as mirrors, the digest key and the journal
	// of commit statuses. The default is /var/lib/weir for root, otherwise weir below
	// XDG_STATE_HOME or ~/.local/state.
	StateDir string `yaml:"stateDir"`
	// Listen is the address of the page, the API and the metrics.
	Listen string `yaml:"listen"`
	// PublicURL is the address at which people reach the page, such as https://weir.example.com.
	// Commit statuses and comments link to it. Without it they have no links.
	PublicURL string        `yaml:"publicURL"`
	TLS       TLS           `yaml:"tls"`
	Access    access.Access `yaml:"access"`
	// Interval is the time between passes while nothing is changing.
	Interval time.Duration `yaml:"interval"`
	AWS      AWS           `yaml:"aws"`
	// KeepVersions is the number of earlier versions of a launch template that weir keeps: 1 to
	// 9998. The annotation weir.dev/keep-versions of a pool overrides it.
	KeepVersions Versions          `yaml:"keepVersions"`
	Limits       targetspec.Limits `yaml:"limits"`
	Coordination Coordination      `yaml:"coordination"`
	Sources      []Source          `yaml:"sources"`
	Forges       []Forge           `yaml:"forges"`
	Notify       []Notify          `yaml:"notify"`
	// GateProviders lists the servers that gates of FleetRollouts can query.
	GateProviders []GateProvider      `yaml:"gateProviders"`
	Targets       []targetspec.Target `yaml:"targets"`

	// File is the path of the configuration, as given.
	File string `yaml:"-"`
}

// AWS configures how weir reaches AWS.
type AWS struct {
	// Endpoint is empty for AWS itself, "embedded", or a URL that replaces the endpoints of all
	// services.
	Endpoint string `yaml:"endpoint"`
	// ShareOfLimits is the percentage of AWS's rate limits for mutating requests that weir uses in
	// each account and region: 1 to 100. Other callers share these limits. While AWS
	// throttles, weir uses less.
	ShareOfLimits int `yaml:"shareOfLimits"`
}

// Share returns ShareOfLimits as a fraction.
func (a AWS) Share() float64 { return float64(a.ShareOfLimits) / 100 }

// Forge receives the commit statuses of a source, and sends webhooks about it.
type Forge struct {
	// Type is the kind of forge.
	Type string `yaml:"type"`
	// URL is the repository's web address on the forge. It is optional for the type generic.
	URL string `yaml:"url"`
	// Source names the source whose commits get statuses. It is optional if there is only one
	// source.
	Source string `yaml:"source"`
	// TokenFile holds an access token. It is optional for GitHub if the source has a githubApp.
	TokenFile string `yaml:"tokenFile"`
	// WebhookSecretFile holds the secrets that sign webhooks of the source, one on each line, with
	// at least 16 characters. weir reads it for each webhook. Without it weir accepts no webhooks.
	WebhookSecretFile string `yaml:"webhookSecretFile"`
	// PullRequests configures which pull requests into the followed branch weir plans.
	PullRequests pulls.Policy `yaml:"pullRequests"`
	// Push lets weir push branches of its own and open pull requests from them. Without it weir
	// pushes nothing.
	Push Push `yaml:"push"`
}

// Profile returns the properties of every forge of the type.
func (f Forge) Profile() forge.Profile { return forge.ProfileOf(forge.Kind(f.Type)) }

// The defaults of a configuration.
const (
	DefaultListen         = "127.0.0.1:8344"
	defaultInterval       = time.Minute
	defaultSourceInterval = 30 * time.Second
)

// Env contains the inputs from the environment of the process.
type Env struct {
	// Getenv returns the value of an environment variable.
	Getenv func(string) string
	// Root says that the process runs as root.
	Root bool
	// Files says that files with credentials are checked. A daemon reads them, but a command of another
	// user on the same machine may not be allowed to.
	Files bool
}

// setDefaults sets the defaults of missing keys and makes paths absolute.
func (c *Config) setDefaults(env Env) {
	base := filepath.Dir(c.File)
	if c.StateDir == "" {
		c.StateDir = defaultStateDir(env)
	}
	c.Listen = cmp.Or(c.Listen, DefaultListen)
	c.Interval = cmp.Or(c.Interval, defaultInterval)
	c.AWS.ShareOfLimits = cmp.Or(c.AWS.ShareOfLimits, 100)
	c.KeepVersions = cmp.Or(c.KeepVersions, model.DefaultKeepVersions)
	c.Limits = c.Limits.WithDefaults()
	targetspec.Absolute(base, &c.StateDir, &c.TLS.CertFile, &c.TLS.KeyFile)
	accessDefaults(&c.Access, base)
	c.Coordination.setDefaults(base)
	for i := range c.Sources {
		c.Sources[i].setDefaults(base)
	}
	only := ""
	if len(c.Sources) == 1 {
		only = c.Sources[0].Name
	}
	for i := range c.Forges {
		targetspec.Absolute(base, &c.Forges[i].TokenFile, &c.Forges[i].WebhookSecretFile)
		c.Forges[i].Push.setDefaults(base)
		c.Forges[i].PullRequests.SetDefaults()
		c.Forges[i].Source = cmp.Or(c.Forges[i].Source, only)
	}
	for i := range c.Notify {
		targetspec.Absolute(base, &c.Notify[i].SecretFile)
	}
	for i := range c.GateProviders {
		c.GateProviders[i].setDefaults(base)
	}
	for i := range c.Targets {
		t := &c.Targets[i]
		t.SetDefaults(base)
		t.Source = cmp.Or(t.Source, only)
	}
}

// SystemStateDir is the default state directory of root, and the volume of the container image.
const SystemStateDir = "/var/lib/weir"

// defaultStateDir returns SystemStateDir for root, otherwise weir below XDG_STATE_HOME or ~/.local/state.
func defaultStateDir(env Env) string {
	if env.Root {
		return SystemStateDir
	}
	if dir := env.Getenv("XDG_STATE_HOME"); filepath.IsAbs(dir) {
		return filepath.Join(dir, "weir")
	}
	return filepath.Join(env.Getenv("HOME"), ".local", "state", "weir")
}

// isPath distinguishes a path on this machine from a URL and from ssh's host:path.
func isPath(url string) bool {
	colon, slash := strings.Index(url, ":"), strings.Index(url, "/")
	return url != "" && (colon < 0 || slash >= 0 && slash < colon)
}

// Load reads the configuration in file. The list contains all its faults, sorted. The configuration is nil
// if one of them is an error. The error is about reading the file.
func Load(file string, env Env) (*Config, diag.List, error) {
	content, err := os.ReadFile(file)
	if err != nil {
		return nil, nil, fmt.Errorf("read configuration: %w", err)
	}
	c, faults := Parse(file, content, env)
	return c, faults, nil
}

// Parse is Load for content that was read from file.
func Parse(file string, content []byte, env Env) (*Config, diag.List) {
	d := &decoder{file: file, at: map[string]diag.Position{}}
	c := &Config{File: file}
	if !d.document(content, c) {
		return nil, d.faults.Sorted()
	}
	c.setDefaults(env)
	found := &findings{c, d}
	v := &validator{config: c, found: found, reads: credentialValidator{c, found}}
	v.run()
	for i := range c.Targets {
		for j := range c.Targets[i].VarsFrom {
			c.Targets[i].VarsFrom[j].At = v.found.position(fmt.Sprintf("targets[%d].varsFrom[%d].file", i, j)) // or the position of the entry
		}
	}
	if env.Files {
		v.reads.files()
	}
	if d.faults.HasErrors() {
		return nil, d.faults.Sorted()
	}
	return c, d.faults.Sorted()
}

// Reachable replaces "any address" with the loopback address, because a server can listen on "any address",
// but a client cannot always connect to it.
func Reachable(listen string) string {
	host, port, err := net.SplitHostPort(listen)
	if ip := net.ParseIP(host); err == nil && ip != nil && ip.IsUnspecified() {
		return net.JoinHostPort("127.0.0.1", port)
	}
	return listen
}
