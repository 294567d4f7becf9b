package app

import (
	"context"
	"fmt"
	"strings"
	"time"

	"github.com/weir-gitops/weir/cmd/weir/internal/systemd"
	"github.com/weir-gitops/weir/status"
)

// readyPace is how often it is looked whether the daemon is ready, statusPace how
// often the manager is told how it stands.
const (
	readyPace  = 100 * time.Millisecond
	statusPace = 10 * time.Second
)

// supervise tells the service manager when the daemon is ready, and from then on
// that it is alive, as long as the loop shows signs of life.
func (a *App) supervise(ctx context.Context) error {
	started, ready, told := time.Now(), false, ""
	pace := readyPace
	for {
		var lines []string
		if !ready && a.Ready() {
			ready, pace = true, statusPace
			if w := a.manager.Watchdog(); w > 0 {
				pace = min(pace, w/2)
			}
			lines = append(lines, systemd.Ready)
		}
		if ready && a.manager.Watchdog() > 0 && a.board.Alive(started, 0) {
			lines = append(lines, systemd.Alive)
		}
		if text := standing(a.board.Targets()); text != told {
			told = text
			lines = append(lines, "STATUS="+text)
		}
		a.tellManager(lines...)
		timer := time.NewTimer(pace)
		select {
		case <-ctx.Done():
			timer.Stop()
			return nil
		case <-timer.C:
		}
	}
}

// tellManager tells the service manager something. One that does not listen any
// more is no reason to stop.
func (a *App) tellManager(lines ...string) {
	if len(lines) == 0 {
		return
	}
	if err := a.manager.Tell(lines...); err != nil {
		a.log.Debug("service manager is not told", "error", err)
	}
}

// standing says in a line how the targets stand.
func standing(targets []status.TargetState) string {
	if len(targets) == 0 {
		return "waiting for the first commit"
	}
	n := map[status.TargetPhase]int{}
	for _, t := range targets {
		n[t.Phase]++
	}
	var parts []string
	for _, p := range []status.TargetPhase{status.TargetFailing, status.TargetMoving, status.TargetWaiting, status.TargetHeld, status.TargetSuspended, status.TargetConverged} {
		if n[p] > 0 {
			parts = append(parts, fmt.Sprintf("%d %s", n[p], p))
		}
	}
	return "targets: " + strings.Join(parts, ", ")
}
