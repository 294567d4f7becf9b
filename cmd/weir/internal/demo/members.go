package demo

import (
	"context"
	"errors"
	"fmt"
	"net/url"
	"os"
	"path/filepath"
	"strings"
	"time"

	"go.etcd.io/etcd/server/v3/embed"

	"github.com/weir-gitops/weir/cmd/weir/internal/ports"
	"github.com/weir-gitops/weir/reconciler/state/files"
)

// Member is one of several daemons of a demo, before its start.
type Member struct {
	Config string // its configuration file
	Page   string // the future address of its page
	Log    string // a file for its log
}

// Etcd is an etcd on this machine, for the daemons of a demo.
type Etcd struct {
	Address string
	server  *embed.Etcd
}

// Close stops it.
func (e *Etcd) Close() { e.server.Close() }

// etcdWithin is the timeout for the start of etcd.
const etcdWithin = time.Minute

// StartEtcd starts an etcd with its data in the demo's directory.
func (d *Demo) StartEtcd(ctx context.Context) (*Etcd, error) {
	free := func() (url.URL, error) {
		address, err := ports.Address()
		return url.URL{Scheme: "http", Host: address}, err
	}
	client, err := free()
	if err != nil {
		return nil, fmt.Errorf("start etcd: %w", err)
	}
	peer, err := free()
	if err != nil {
		return nil, fmt.Errorf("start etcd: %w", err)
	}
	c := embed.NewConfig()
	c.Dir, c.LogLevel = filepath.Join(d.Dir, "etcd"), "fatal"
	c.ListenClientUrls, c.AdvertiseClientUrls = []url.URL{client}, []url.URL{client}
	c.ListenPeerUrls, c.AdvertisePeerUrls = []url.URL{peer}, []url.URL{peer}
	c.InitialCluster = c.InitialClusterFromName(c.Name)
	server, err := embed.StartEtcd(c)
	if err != nil {
		return nil, fmt.Errorf("start etcd: %w", err)
	}
	timer := time.NewTimer(etcdWithin)
	defer timer.Stop()
	select {
	case <-server.Server.ReadyNotify():
		return &Etcd{client.String(), server}, nil
	case <-timer.C:
		err = errors.New("it takes too long")
	case <-ctx.Done():
		err = ctx.Err()
	}
	server.Close()
	return nil, fmt.Errorf("start etcd: %w", err)
}

const coordinationText = `coordination: # several daemons share the work of the instance
  keysFile: keys
  etcd: {endpoints: [%s]}
`

// Members configures n daemons that share an etcd, the first one at the address of the demo's page. It
// always creates their files again from the demo's current configuration.
func (d *Demo) Members(n int, etcd string) (out []Member, err error) {
	text, err := os.ReadFile(d.Config)
	if err != nil {
		return nil, fmt.Errorf("make members: %w", err)
	}
	keys := filepath.Join(d.Dir, "keys")
	if _, err := files.OpenKey(keys, "key of the instance", "all members need the new one"); err != nil {
		return nil, fmt.Errorf("make members: %w", err)
	}
	found, err := readAddresses(d.Config)
	if err != nil {
		return nil, fmt.Errorf("make members: %w", err)
	}
	for i := 1; i <= n; i++ {
		page := d.page.Addr().String()
		if i > 1 {
			if page, err = ports.Address(); err != nil {
				return nil, fmt.Errorf("make members: %w", err)
			}
		}
		name := fmt.Sprintf("member-%d", i)
		m := Member{Config: filepath.Join(d.Dir, name+".yaml"), Page: "http://" + page, Log: filepath.Join(d.Dir, name+".log")}
		own := string(found.with(page, d.AWS.URL()))
		own = strings.Replace(own, "\nstateDir: state\n", "\nstateDir: state-"+name+"\n"+fmt.Sprintf(coordinationText, etcd), 1)
		if own == string(text) || !strings.Contains(own, "\ncoordination:") {
			return nil, fmt.Errorf("make members: %s has another stateDir than the demo wrote", d.Config)
		}
		if err := files.Write(m.Config, []byte(own)); err != nil {
			return nil, fmt.Errorf("make members: %w", err)
		}
		out = append(out, m)
	}
	if err := d.releasePage(); err != nil { // for the first member
		return nil, fmt.Errorf("make members: %w", err)
	}
	return out, nil
}
