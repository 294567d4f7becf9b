package main

import (
	"fmt"
	"log/slog"
	"strings"
	"time"

	"github.com/lmittmann/tint"
	"github.com/spf13/cobra"
)

// logFlags configures the log of a daemon.
type logFlags struct {
	level  string
	format string
}

func (l *logFlags) add(c *cobra.Command) {
	l.level, l.format = "info", "auto"
	levels, formats := []string{"debug", "info", "warn", "error"}, []string{"auto", "text", "json"}
	c.Flags().Var(choice{&l.level, levels}, "log-level", "lowest level to log")
	c.Flags().Var(choice{&l.format, formats}, "log-format", "text for people, json for programs; auto is text on a terminal and json elsewhere")
	complete(c, "log-level", func(string) []string { return levels })
	complete(c, "log-format", func(string) []string { return formats })
}

// logger returns a logger to standard error.
func (l *logFlags) logger(s surroundings) (*slog.Logger, error) {
	var level slog.Level
	if err := level.UnmarshalText([]byte(l.level)); err != nil {
		return nil, fmt.Errorf("--log-level: %w", err)
	}
	terminal := isTerminal(s.stderr)
	if l.format == "json" || l.format == "auto" && !terminal {
		return slog.New(s.secrets.Handler(slog.NewJSONHandler(s.stderr, &slog.HandlerOptions{Level: level, ReplaceAttr: redactAttr}))), nil
	}
	return slog.New(s.secrets.Handler(tint.NewTextHandler(s.stderr, &tint.Options{
		Level: level, TimeFormat: time.TimeOnly, NoColor: !terminal || s.getenv("NO_COLOR") != "", ReplaceAttr: redactAttr,
	}))), nil
}

// redactAttr hides the value of every attribute in the log whose name suggests a secret.
func redactAttr(_ []string, a slog.Attr) slog.Attr {
	key := strings.ToLower(a.Key)
	for _, word := range []string{"password", "secret", "authorization", "privatekey", "userdata"} {
		if strings.Contains(key, word) {
			return slog.String(a.Key, "redacted")
		}
	}
	if key == "token" {
		return slog.String(a.Key, "redacted")
	}
	return a
}
