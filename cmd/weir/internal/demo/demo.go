// Package demo sets up everything that weir needs on one machine: an embedded AWS with a fast clock, a Git
// repository with the example fleet, and a configuration that follows it. It creates ordinary files, so
// that users can read and change them, and continue with them.
package demo

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"io/fs"
	"net"
	"os"
	"path/filepath"

	"github.com/weir-gitops/weir/cmd/weir/internal/embedded"
	"github.com/weir-gitops/weir/reconciler/state/files"
)

// The default addresses of a demo. Other ports are used if these are not free.
const (
	pageAddress = "127.0.0.1:8344"
	awsAddress  = "127.0.0.1:8345"
	anyPort     = "127.0.0.1:0"
)

// Demo is a directory with all files of the demo, and its AWS.
type Demo struct {
	// Dir is the demo's directory, Repository its Git work tree, and Config its configuration file.
	Dir        string
	Repository string
	Config     string
	// AWS is the embedded AWS. It serves requests after its Run is called.
	AWS *embedded.Server
	// Git says that git is installed, so that users can commit.
	Git bool
	// page listens at the configured address, so that no other process can take the address before the
	// daemon starts.
	page net.Listener
}

// New creates everything that is missing in dir. An existing demo continues.
func New(ctx context.Context, dir string, files fs.FS) (*Demo, error) {
	dir, err := filepath.Abs(dir)
	if err != nil {
		return nil, fmt.Errorf("make demo: %w", err)
	}
	if err := os.MkdirAll(dir, 0o700); err != nil {
		return nil, fmt.Errorf("make demo: %w", err)
	}
	d := &Demo{Dir: dir, Repository: filepath.Join(dir, "fleet"), Config: filepath.Join(dir, "weir.yaml")}
	if d.Git, err = makeRepository(ctx, d.Repository, files); err != nil {
		return nil, fmt.Errorf("make demo: %w", err)
	}
	kept, err := readAddresses(d.Config)
	if err != nil {
		return nil, fmt.Errorf("make demo: %w", err)
	}
	seed := filepath.Join(dir, "aws-seed.json")
	if err := os.WriteFile(seed, []byte(seedText), 0o600); err != nil {
		return nil, fmt.Errorf("make demo: %w", err)
	}
	o := embedded.Options{Listen: kept.aws.or(awsAddress), State: filepath.Join(dir, "aws.json"), Seed: seed}
	if d.AWS, err = embedded.New(ctx, o); err != nil {
		o.Listen = anyPort
		if d.AWS, err = embedded.New(ctx, o); err != nil {
			return nil, fmt.Errorf("make demo: %w", err)
		}
	}
	if d.page, err = listen(ctx, kept.page.or(pageAddress)); err != nil {
		return nil, errors.Join(fmt.Errorf("make demo: %w", err), d.AWS.Close())
	}
	if err := d.configure(kept, d.page.Addr().String()); err != nil {
		return nil, errors.Join(fmt.Errorf("make demo: %w", err), d.Close())
	}
	return d, nil
}

// Close closes the listeners of a demo that is not running.
func (d *Demo) Close() error { return errors.Join(d.AWS.Close(), d.releasePage()) }

// releasePage closes the page's listener, unless Listen has passed it to a daemon.
func (d *Demo) releasePage() error {
	if d.page == nil {
		return nil
	}
	l := d.page
	d.page = nil
	return l.Close()
}

// Listen opens the page's listener for the daemon. For the demo's own address, it returns the listener that
// the demo has already opened.
func (d *Demo) Listen(ctx context.Context, network, address string) (net.Listener, error) {
	if l := d.page; l != nil && l.Addr().String() == address {
		d.page = nil
		return l, nil
	}
	if err := d.releasePage(); err != nil {
		return nil, err
	}
	return new(net.ListenConfig).Listen(ctx, network, address)
}

// listen opens a listener at the preferred address, or on another port if that one is in use.
func listen(ctx context.Context, preferred string) (net.Listener, error) {
	var lc net.ListenConfig
	l, err := lc.Listen(ctx, "tcp", preferred)
	if err != nil {
		return lc.Listen(ctx, "tcp", anyPort)
	}
	return l, nil
}

const configText = `# The demo's configuration: a real one. weir reads it again when it changes.
apiVersion: weir.dev/v1alpha1
kind: Config
instance: weir
stateDir: state
listen: %s
interval: 5s
aws:
  endpoint: %s # the embedded AWS; leave it out for AWS itself
sources:
- name: fleet
  url: fleet # a Git repository beside this file
  ref: {branch: main}
targets:
- name: "{1}" # one target for each directory that the path matches
  source: fleet
  path: overlays/*
  region: eu-west-1
  vars:
    CLUSTER_NAME: "{1}"
    AWS_REGION: eu-west-1
    API_SERVER: 10.0.0.10
  varsFrom:
  - path: values.env # in the directory itself
  - file: join.env # what a real fleet keeps out of Git
  network: # where manifests and EKS do not say it
    subnetIDs: [subnet-13c49c1d20c402adc, subnet-1af09c8e1de7e0deb, subnet-89674f70ca416dc59]
    securityGroupIDs: [sg-844d146a43bde436d]
  dependsOn: ["dev-*"] # production waits until development has converged at the same commit
  prune:
    enabled: true
    limit: 1
`

// seedText contains the EKS clusters that the overlays are named after.
const seedText = `{"regions": {"eu-west-1": {"clusters": [{"name": "dev-eu"}, {"name": "prod-eu"}]}}}
`

// joinText contains values of the right form that give no access.
const joinText = `# Values for kubeadm join, as "kubeadm token create --print-join-command" prints them.
JOIN_TOKEN=abcdef.0123456789abcdef
CA_CERT_HASH=sha256:0000000000000000000000000000000000000000000000000000000000000000
`

// configure writes the configuration, and join.env if it is missing. In an existing configuration, it changes
// only the addresses, because users may have changed everything else.
func (d *Demo) configure(existing existingConfig, page string) error {
	join := filepath.Join(d.Dir, "join.env")
	if _, err := os.Stat(join); errors.Is(err, fs.ErrNotExist) {
		if err := os.WriteFile(join, []byte(joinText), 0o600); err != nil {
			return err
		}
	}
	text := fmt.Appendf(nil, configText, page, d.AWS.URL())
	if existing.text != nil {
		text = existing.with(page, d.AWS.URL())
		if bytes.Equal(text, existing.text) {
			return nil
		}
	}
	return files.Write(d.Config, text)
}

// NextSteps returns complete command lines to use while the demo runs. weir is the name with which to call
// this program.
func (d *Demo) NextSteps(weir string) string {
	const watch = `
What to try next, in another terminal:

  # Ask for another size: the page shows it within a second of the commit, in dev
  # first, and once that has converged in prod.
  cd %[1]s
  sed -i.bak 's/maxSize: 12/maxSize: 20/' pools/spot/awsmachinepool-patch.yaml
  %[2]s

  # Change something behind weir's back: it is put right within ten seconds.
  export AWS_ACCESS_KEY_ID=weir AWS_SECRET_ACCESS_KEY=weir AWS_DEFAULT_REGION=eu-west-1
  aws --endpoint-url %[3]s autoscaling update-auto-scaling-group --auto-scaling-group-name dev-eu-spot-workers --max-size 7

  # See what the next pass would do, and how the pools stand.
  %[4]s plan --config %[5]s
  %[4]s status --config %[5]s

Ctrl-C ends the demo.
`
	commit := "git commit -qam 'larger spot pools'"
	if !d.Git {
		commit = "# git is not installed here, so there is no way to commit it"
	}
	return fmt.Sprintf(watch, d.Repository, commit, d.AWS.URL(), weir, d.Config)
}
