package ec2

import "testing"

func TestWildcard(t *testing.T) {
	tests := []struct {
		pattern, text string
		want          bool
	}{
		{"a*c", "abbbc", true}, {"a*c", "ac", true}, {"a*c", "acd", false},
		{"a?c", "abc", true}, {"a?c", "ac", false}, {"*", "", true}, {"?", "", false},
		{`a\*c`, "a*c", true}, {`a\*c`, "abc", false}, {`a\?`, "a?", true}, {"**a**", "bab", true},
		{"capa-ami-ubuntu-24.04-?1.34.1-*", "capa-ami-ubuntu-24.04-v1.34.1-1762940400", true},
		{"capa-ami-ubuntu-24.04-?1.34.1-*", "capa-ami-ubuntu-24.04-v1.34.10-1762940400", false},
		{"*a*a*a*a*b", "aaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaa", false},
	}
	for _, tt := range tests {
		if got := Wildcard(tt.pattern, tt.text); got != tt.want {
			t.Errorf("Wildcard(%q, %q) = %v, want %v", tt.pattern, tt.text, got, tt.want)
		}
	}
}
