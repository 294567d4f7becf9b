// Package servicemanager reports to the service manager that started the process, such as systemd.
package servicemanager

import (
	"context"
	"fmt"
	"log/slog"
	"os"
	"strings"
	"time"

	systemd "github.com/coreos/go-systemd/v22/daemon"

	"github.com/weir-gitops/weir/status/current"
	"github.com/weir-gitops/weir/status/report"
)

// firstPace is the interval between statuses to the manager until every target had its first pass,
// statusPace the interval from then on. startStep bounds the time of each step of the start.
const (
	firstPace  = time.Second
	statusPace = 10 * time.Second
	startStep  = time.Minute
)

// watchdog reads the settings of the service manager that started the process. It returns the maximum
// interval between two keep-alive messages, or 0 if no manager expects them. An invalid environment is an
// error, because a manager that never receives READY does not report a reason.
func watchdog() (time.Duration, error) {
	socket := os.Getenv("NOTIFY_SOCKET")
	if socket == "" {
		return 0, nil
	}
	if socket[0] != '/' && socket[0] != '@' {
		return 0, fmt.Errorf("read NOTIFY_SOCKET: %q is neither a path nor an abstract name; unset it if no service manager listens", socket)
	}
	every, err := systemd.SdWatchdogEnabled(false)
	if err != nil || every < 0 || every > 24*time.Hour { // negative after an overflow
		return 0, fmt.Errorf("read WATCHDOG_USEC: %q is not a number of microseconds up to a day, or WATCHDOG_PID %q is not a process", os.Getenv("WATCHDOG_USEC"), os.Getenv("WATCHDOG_PID"))
	}
	return every, nil
}

// Manager is the service manager that started the process, if any.
type Manager struct {
	log *slog.Logger
	// watchdog is the maximum interval between two keep-alive messages; 0 if the manager expects none.
	watchdog time.Duration
}

// Open reads the settings of the service manager.
func Open(log *slog.Logger) (*Manager, error) {
	every, err := watchdog()
	return &Manager{log, every}, err
}

// Starting reports the next step of the start to the service manager. The manager grants time only for that
// step, so that a slow start continues and a stuck one ends.
func (m *Manager) Starting(step string) {
	m.Notify(fmt.Sprintf("EXTEND_TIMEOUT_USEC=%d", startStep.Microseconds()), "STATUS=starts: "+step)
}

// Supervise reports to the service manager that the daemon is ready, which is even before its first pass.
// From then on, it reports that the daemon is alive as long as the loop sends heartbeats.
func (m *Manager) Supervise(ctx context.Context, state *current.State) error {
	started, sent := time.Now(), ""
	lines := []string{systemd.SdNotifyReady}
	for {
		if _, alive := state.Heartbeat.Silence(started, 0); m.watchdog > 0 && alive {
			lines = append(lines, systemd.SdNotifyWatchdog)
		}
		if text := standing(state.Targets.All()); text != sent {
			sent = text
			lines = append(lines, "STATUS="+text)
		}
		m.Notify(lines...)
		lines = nil
		pace := statusPace
		if !Ready(state.Targets.All()) {
			pace = firstPace
		}
		if m.watchdog > 0 {
			pace = min(pace, m.watchdog/2)
		}
		timer := time.NewTimer(pace)
		select {
		case <-ctx.Done():
			timer.Stop()
			return nil
		case <-timer.C:
		}
	}
}

// Notify sends lines to the service manager. It ignores errors, because a missing listener is no reason to
// stop.
func (m *Manager) Notify(lines ...string) {
	if len(lines) == 0 {
		return
	}
	if _, err := systemd.SdNotify(false, strings.Join(lines, "\n")); err != nil {
		m.log.Debug("service manager is not told", "error", err)
	}
}

// standing describes the state of the targets, or the progress of the first pass, in one line.
func standing(targets []current.TargetState) string {
	if len(targets) == 0 {
		return "waiting for the first commit"
	}
	n, passed, rendered := map[report.Phase]int{}, 0, 0
	for _, t := range targets {
		n[t.Phase]++
		if t.Last != nil {
			passed++
		}
		if t.Rendering.Revision != "" {
			rendered++
		}
	}
	var parts []string
	for _, p := range []report.Phase{report.Failing, report.Moving, report.Waiting, report.Held, report.Suspended, report.Converged} {
		if n[p] > 0 {
			parts = append(parts, fmt.Sprintf("%d %s", n[p], p))
		}
	}
	text := "targets: " + strings.Join(parts, ", ")
	if rendered > 0 {
		text += fmt.Sprintf("; %d being rendered", rendered)
	}
	if passed < len(targets) {
		text = fmt.Sprintf("first pass: %d of %d targets done; %s", passed, len(targets), text)
	}
	return text
}

// Ready reports whether every target has had its first pass.
func Ready(targets []current.TargetState) bool {
	for _, t := range targets {
		if t.Last == nil {
			return false
		}
	}
	return len(targets) > 0
}
