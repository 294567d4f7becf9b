package main

import (
	"bytes"
	"fmt"
	"io"
	"maps"
	"slices"
	"strings"
	"time"

	"github.com/spf13/cobra"
	"golang.org/x/term"

	"github.com/weir-gitops/weir/status/wording"
)

// watchStatus shows the state of pools until the command is interrupted. That is its normal end, not an
// error. If a later request fails, it reports the error and continues.
func watchStatus(c *cobra.Command, s surroundings, flags *passFlags, f statusFlags, args []string) error {
	var last map[string]string
	for first := true; ; first = false {
		found, err := readStanding(c, s, flags, f.serverFlags, args)
		switch {
		case c.Context().Err() != nil:
			return nil
		case err != nil && first:
			return err
		}
		s.stderr = io.Discard // a read error is reported once
		f.narrow(&found)
		now := time.Now()
		if s.redraws(s.stdout) {
			drawStatus(s, found, err, f.interval, now)
		} else {
			last = appendStatus(s, found, err, last, now)
		}
		timer := time.NewTimer(f.interval)
		select {
		case <-c.Context().Done():
			timer.Stop()
			return nil
		case <-timer.C:
		}
	}
}

// drawStatus redraws the terminal with a single write, so that it does not flicker. It never prints more
// lines than the terminal has.
func drawStatus(s surroundings, found standing, failure error, interval time.Duration, now time.Time) {
	p := s.printer(s.stdout)
	var b bytes.Buffer
	p.W = &b
	p.Heading(now.Format(time.TimeOnly), fmt.Sprintf("every %s, Ctrl-C ends it", interval))
	if failure != nil {
		p.Note(failure.Error())
	} else {
		found.print(p)
		found.complain(s, &b)
	}
	lines := strings.Split(strings.TrimRight(b.String(), "\n"), "\n")
	if out := file(s.stdout); out != nil {
		if _, height, err := term.GetSize(int(out.Fd())); err == nil && height > 2 && len(lines) > height-1 {
			lines = append(lines[:height-2], fmt.Sprintf("… and %s more; --problems shows fewer", plural(len(lines)-height+2, "line", "lines")))
		}
	}
	_, _ = fmt.Fprintf(s.stdout, "\x1b[H\x1b[2J%s\n", strings.Join(lines, "\n")) // a closed terminal ends the process
}

// appendStatus prints a line for each pool that is new, has changed or was removed, and returns the current
// lines.
func appendStatus(s surroundings, found standing, failure error, last map[string]string, now time.Time) map[string]string {
	at := now.UTC().Format(time.RFC3339)
	if failure != nil {
		fmt.Fprintf(s.stdout, "%s  %s\n", at, wording.Clean(failure.Error()))
		return last
	}
	lines := found.marks.Lines(found.Pools)
	for _, name := range slices.Sorted(maps.Keys(lines)) {
		if lines[name] != last[name] {
			fmt.Fprintf(s.stdout, "%s  %s: %s\n", at, name, lines[name])
		}
	}
	for _, name := range slices.Sorted(maps.Keys(last)) {
		if _, still := lines[name]; !still {
			fmt.Fprintf(s.stdout, "%s  %s: no longer shown\n", at, name)
		}
	}
	return lines
}
