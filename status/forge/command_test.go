package forge

import (
	"strings"
	"testing"
	"unicode/utf8"

	"pgregory.net/rapid"
)

const digest = "3f5a2c9e3f5a2c9e3f5a2c9e3f5a2c9e3f5a2c9e3f5a2c9e3f5a2c9e3f5a2c9e"

func TestParseCommand(t *testing.T) {
	unknown := func(text string) Command { return Command{Name: Unknown, Text: text} }
	meant := func(text, command string) Command { return Command{Name: Unknown, Text: text, Meant: command} }
	for name, tt := range map[string]struct {
		body string
		want Command // zero for none
	}{
		"plan":                      {"weir plan", Command{Name: Plan}},
		"any case":                  {"Weir PLAN", Command{Name: Plan}},
		"help":                      {"weir help\n", Command{Name: Help}},
		"approve":                   {"weir approve", Command{Name: Approve}},
		"approve a digest":          {"weir approve " + strings.ToUpper(digest), Command{Name: Approve, Digest: digest}},
		"approve its beginning":     {"weir approve 3f5a2c9e", Command{Name: Approve, Digest: "3f5a2c9e"}},
		"too short a beginning":     {"weir approve 3f5a2c9", unknown("approve 3f5a2c9")},
		"too long a digest":         {"weir approve " + digest + "0", unknown(("approve " + digest)[:60])},
		"not a digest":              {"weir approve everything", unknown("approve everything")},
		"blanks around":             {"\r\n \t\r\n  weir   plan \t\r\n", Command{Name: Plan}},
		"old line ends":             {"weir plan\r", Command{Name: Plan}},
		"and a reason":              {"weir approve\n\nLooks good to me.", Command{Name: Approve}},
		"below a quotation":         {"> weir approve\n> and more\n\nweir plan", Command{Name: Plan}},
		"below code":                {"```\nweir approve\n```\nweir plan", Command{Name: Plan}},
		"below an HTML comment":     {"<!-- weir approve -->\n<!--\nweir approve\n-->\nweir plan", Command{Name: Plan}},
		"below several on a line":   {"<!-- a --> <!-- b\n --> \nweir plan", Command{Name: Plan}},
		"an empty HTML comment":     {"<!---->\nweir plan", Command{Name: Plan}},
		"another word":              {"weir destroy", unknown("destroy")},
		"with an argument":          {"weir plan prod", unknown("plan prod")},
		"a harmful word":            {"weir @everyone<script>`", unknown("everyonescript")},
		"another script":            {"weir плам", unknown("")},
		"nothing":                   {"", Command{}},
		"only the name":             {"weir", Command{}},
		"prose":                     {"weir plan looks good to me", Command{}},
		"longer prose":              {"weir is a program that …", Command{}},
		"the second line":           {"Please\nweir plan", Command{}},
		"within a line":             {"please weir plan", Command{}},
		"as code in a line":         {"`weir plan`", meant("plan", "weir plan")},
		"emphasised":                {"**weir plan**", meant("plan", "weir plan")},
		"as a list":                 {"- weir plan", Command{}},
		"with a stop":               {"weir: plan", meant("plan", "weir plan")},
		"with a full stop":          {"weir approve.", meant("approve", "weir approve")},
		"mentioned":                 {"@weir plan", meant("plan", "weir plan")},
		"a slash":                   {"/weir plan", meant("plan", "weir plan")},
		"a slash and a digest":      {"/weir approve 3F5A2C9E", meant("approve 3F5A2C9E", "weir approve 3f5a2c9e")},
		"a slash and a riddle":      {"/weir destroy", Command{}},
		"another bot's":             {"/weird plan", Command{}},
		"quoted":                    {"> weir plan", Command{}},
		"quoted in a quotation":     {">> weir plan", Command{}},
		"quoted without the sign":   {"> As was said:\nweir plan", Command{}},
		"after that a paragraph":    {"> As was said:\nweir approve\n\nweir plan", Command{Name: Plan}},
		"code":                      {"```\nweir plan\n```", Command{}},
		"code of another fence":     {"~~~~ sh\nweir plan\n```\n~~~\nweir plan\n~~~~", Command{}},
		"code that does not end":    {"```sh\nweir plan\n", Command{}},
		"a fence with a word":       {"```\n``` x\nweir plan", Command{}},
		"no fence":                  {"``` weir ```\nweir plan", Command{}},
		"indented code":             {"    weir plan", Command{}},
		"indented by a tab":         {" \tweir plan", Command{}},
		"indented by three":         {"   weir plan", Command{Name: Plan}},
		"an HTML comment":           {"<!-- weir plan -->", Command{}},
		"an HTML comment, open":     {"<!--\nweir plan", Command{}},
		"beside an HTML comment":    {"<!-- x --> weir plan", Command{}},
		"at an HTML comment's end":  {"<!--\n--> weir plan", Command{}},
		"HTML":                      {"<details>\nweir plan\n</details>", Command{}},
		"a letter that folds to it": {"weir \u212aplan", unknown("plan")},
		"broken text":               {"weir pl\xffan", unknown("plan")},
	} {
		got, ok := ParseCommand(tt.body)
		if got != tt.want || ok != (tt.want != Command{}) {
			t.Errorf("%s: %+v, %t, want %+v", name, got, ok, tt.want)
		}
	}
}

// TestNobodyIsQuotedIntoACommand: what stands in a quotation, in code or in an HTML
// comment is no command, whatever it is and whatever is around it.
func TestNobodyIsQuotedIntoACommand(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		line := rapid.SampledFrom([]string{"weir plan", "weir approve " + digest, "weir help", "words", "", "WEIR approve", "weir x", "<!-- a -->"})
		said := rapid.SliceOfN(line, 1, 6).Draw(t, "said")
		var body string
		switch rapid.SampledFrom([]string{"quote", "code", "comment", "indented"}).Draw(t, "how") {
		case "quote":
			body = "> " + strings.Join(said, "\n> ")
		case "code":
			body = "```\n" + strings.Join(said, "\n") + "\n```"
		case "comment":
			body = "<!-- " + strings.ReplaceAll(strings.Join(said, "\n"), "-->", "") + " -->"
		case "indented":
			body = "    " + strings.Join(said, "\n    ")
		}
		after := rapid.SampledFrom([]string{"", "\n\nwords", "\n\nwords weir plan", "\n\n"}).Draw(t, "after")
		if got, ok := ParseCommand(body + after); ok {
			t.Fatalf("%q is the command %+v", body+after, got)
		}
		if got, ok := ParseCommand(body + "\n\nweir plan"); !ok || got.Name != Plan {
			t.Fatalf("%q hides the command below it: %+v", body, got)
		}
	})
}

func FuzzParseCommand(f *testing.F) {
	for _, seed := range []string{"weir plan", "weir approve " + digest, "> a\nweir plan", "```\nweir plan", "<!-- \n-->weir plan", "\t weir x y", "weir \u0085 help"} {
		f.Add(seed)
	}
	f.Fuzz(func(t *testing.T, body string) {
		got, ok := ParseCommand(body)
		switch {
		case ok && !strings.Contains(strings.ToLower(body), "weir"),
			!ok && got != Command{},
			got.Digest != "" && (got.Name != Approve || !isDigest(got.Digest)),
			len(got.Text) > commandText, !utf8.ValidString(got.Text), strings.ContainsAny(got.Text, "<>@#`*_[]()!\n\r\t"),
			got.Text != "" && got.Name != Unknown:
			t.Errorf("%q: %+v, %t", body, got, ok)
		}
		// Saying it again in a quotation is no command.
		if again, ok := ParseCommand("> " + strings.NewReplacer("\r\n", "\n> ", "\n", "\n> ").Replace(body)); ok {
			t.Errorf("quoted, %q is %+v", body, again)
		}
	})
}
