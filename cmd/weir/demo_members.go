package main

import (
	"context"
	"errors"
	"fmt"
	"os"
	"os/exec"
	"strings"
	"sync"
	"syscall"
	"time"

	"github.com/weir-gitops/weir/cmd/weir/internal/client"
	"github.com/weir-gitops/weir/cmd/weir/internal/demo"
	examplerepo "github.com/weir-gitops/weir/example-repo"
	"github.com/weir-gitops/weir/status/members"
	"github.com/weir-gitops/weir/status/wording"
)

// stopMembers is the time that members of a demo have to stop.
const stopMembers = 30 * time.Second

// daemonProcess is a member of a demo.
type daemonProcess struct {
	demo.Member
	cmd   *exec.Cmd
	ended chan struct{}
}

// runMembers runs a demo of several daemons. Each is a separate process; etcd and the emulated AWS run in
// this process.
func runMembers(ctx context.Context, s surroundings, dir string, n int) (err error) {
	d, err := demo.New(ctx, dir, examplerepo.Files)
	if err != nil {
		return err
	}
	awsContext, stopAWS := context.WithCancel(context.WithoutCancel(ctx))
	awsEnded := make(chan error, 1)
	go func() { awsEnded <- d.AWS.Run(awsContext) }()
	defer func() { stopAWS(); err = errors.Join(err, <-awsEnded) }()
	etcd, err := d.StartEtcd(ctx)
	if err != nil {
		return err
	}
	defer etcd.Close()
	list, err := d.Members(n, etcd.Address)
	if err != nil {
		return err
	}
	var all []*daemonProcess
	defer func() { stopAll(all) }()
	for _, m := range list {
		p, err := startMember(m)
		if err != nil {
			return err
		}
		all = append(all, p)
	}
	fmt.Fprintln(s.stdout, list[0].Page)
	fmt.Fprintf(s.stdout, "\n%d daemons share the work. Each page shows all of them:\n\n", n)
	for _, p := range all {
		fmt.Fprintf(s.stdout, "  %s/members  kill -9 %d  # its log: %s\n", p.Page, p.cmd.Process.Pid, p.Log)
	}
	fmt.Fprintf(s.stdout, "\nKill a member that owns something: another member takes its work within 15 seconds, and the\npages show it. %s members --server %s prints the same. Ctrl-C ends the demo.\n\n", callName(), all[len(all)-1].Page)
	follow(ctx, s, all)
	return nil
}

// startMember starts a daemon in a process group of its own, so that Ctrl-C in the terminal does not reach the
// daemon directly. This process passes the signal on.
func startMember(m demo.Member) (*daemonProcess, error) {
	self, err := os.Executable()
	if err != nil {
		return nil, fmt.Errorf("start member: %w", err)
	}
	log, err := os.OpenFile(m.Log, os.O_CREATE|os.O_WRONLY|os.O_APPEND, 0o600)
	if err != nil {
		return nil, fmt.Errorf("start member: %w", err)
	}
	defer func() { _ = log.Close() }()                                             // the member has its own file descriptor
	cmd := exec.Command(self, "run", "--config", m.Config, "--log-format", "json") //nolint:noctx,gosec // a signal stops it, and it runs weir itself
	cmd.Args[0], cmd.Stderr = os.Args[0], log
	cmd.SysProcAttr = &syscall.SysProcAttr{Setpgid: true} // this process passes Ctrl-C on
	if err := cmd.Start(); err != nil {
		return nil, fmt.Errorf("start member: %w", err)
	}
	p := &daemonProcess{Member: m, cmd: cmd, ended: make(chan struct{})}
	go func() {
		defer close(p.ended)
		_ = cmd.Wait() // any way of ending is part of the demo
	}()
	return p, nil
}

// stopAll stops all processes in parallel, and kills the ones that do not stop in time.
func stopAll(all []*daemonProcess) {
	var wg sync.WaitGroup
	for _, p := range all {
		wg.Go(func() {
			_ = p.cmd.Process.Signal(syscall.SIGTERM) // unless it has already ended
			select {
			case <-p.ended:
			case <-time.After(stopMembers):
				_ = p.cmd.Process.Kill()
				<-p.ended
			}
		})
	}
	wg.Wait()
}

// follow prints changes of owners until ctx or the last member ends. It asks any running member.
func follow(ctx context.Context, s surroundings, all []*daemonProcess) {
	said, gone := map[string]string{}, map[*daemonProcess]bool{}
	tell := func(key, text string) {
		if said[key] != text {
			said[key] = text
			fmt.Fprintf(s.stdout, "%s  %s\n", time.Now().Format(time.TimeOnly), wording.Clean(text))
		}
	}
	for len(gone) < len(all) {
		for _, p := range all {
			select {
			case <-p.ended:
				gone[p] = true
				tell(p.Page, fmt.Sprintf("process %d, %s, has ended", p.cmd.Process.Pid, p.Page))
			default:
			}
		}
		for _, p := range all {
			if gone[p] {
				continue
			}
			c, err := client.Find(client.Options{Address: p.Page, Getenv: s.getenv}, nil)
			var v members.View
			if err != nil || c.Ask(ctx, membersPath, &v) != nil {
				continue
			}
			var found standing
			if c.Ask(ctx, "/api/v1/pools", &found) == nil && len(found.Pools) > 0 && allRun(found.Pools) {
				tell("pools", fmt.Sprintf("All %s are running: %s", wording.Count(len(found.Pools), "pool"), p.Page))
			}
			pages := map[string]string{}
			for _, m := range v.Members {
				pages[m.Name] = m.Address
			}
			for _, o := range v.Owned {
				if o.Owner != "" {
					tell(o.Key, strings.TrimSpace(o.Key+" is owned by "+o.Owner+" "+pages[o.Owner]))
				}
			}
			break
		}
		select {
		case <-ctx.Done():
			return
		case <-time.After(500 * time.Millisecond):
		}
	}
}
