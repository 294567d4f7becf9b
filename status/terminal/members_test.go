package terminal

import (
	"bytes"
	"strings"
	"testing"
	"time"

	"github.com/weir-gitops/weir/status/members"
)

func TestMembersTable(t *testing.T) {
	now := time.Date(2026, 3, 2, 12, 0, 0, 0, time.UTC)
	late, same := -3600.5, 0.0
	v := members.View{
		Members: []members.Member{
			{Name: "one", Version: "1.0", Address: "https://one:8344", Answers: true, Scopes: 1, Sources: 1},
			{Name: "two\x1b[31m", Draining: true, Clock: &late, Scopes: 2},
			{Name: "three", Clock: &same},
		},
		Owned: []members.Owned{
			{Key: "scope/aws/1/eu-west-1", Owner: "one", Since: now.Add(-3 * time.Hour), Targets: []string{"dev", "prod"}},
			{Key: "scope/aws/1/us-east-1", Last: "zero", Since: now.Add(-20 * time.Second)},
			{Key: "source/0123456789ab"},
		},
	}
	var out bytes.Buffer
	Printer{W: &out}.Members(v, now)
	const want = `MEMBER           STATE           OWNS               CLOCK            VERSION  PAGE
one              alive, answers  1 scope, 1 source  -                1.0      https://one:8344
two<U+001B>[31m  draining        2 scopes           1h0m0.5s behind  -        -
three            alive           0 scopes           the same         -        -

SCOPE OR SOURCE        OWNER                SINCE  TARGETS
scope/aws/1/eu-west-1  one                  3h     dev, prod
scope/aws/1/us-east-1  nobody, before zero  20s    -
source/0123456789ab    nobody               -      -
`
	if out.String() != want {
		t.Errorf("got\n%s\nwant\n%s", out.String(), want)
	}
	out.Reset()
	v.Engine.Lag = 2.6
	Printer{W: &out}.Members(v, now)
	if !strings.Contains(out.String(), "The engine is slow: the member that answers read the records 2.6s ago, and writes nothing meanwhile.") {
		t.Errorf("a slow engine: %s", out.String())
	}
	out.Reset()
	Printer{W: &out}.Members(members.View{}, now)
	if out.String() != "No member is alive.\n" {
		t.Errorf("nobody: %q", out.String())
	}
}
