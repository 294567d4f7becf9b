//go:build !race

package kust_test

const raceEnabled = false
