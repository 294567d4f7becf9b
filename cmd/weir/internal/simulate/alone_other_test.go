//go:build !linux

package simulate

import "errors"

func alone(string, []string) error { return errors.New("only Linux has a way") }

func inMemory() string { return "" }
