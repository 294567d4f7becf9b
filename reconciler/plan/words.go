package plan

import (
	"encoding/json"
	"strconv"
	"strings"

	"github.com/weir-gitops/weir/reconciler/content"
	"github.com/weir-gitops/weir/reconciler/step"
)

const (
	// wordsChanges is how many changes a reason tells; the plan lists them all.
	wordsChanges = 4
	// wordsValue is how many characters of a value a reason tells.
	wordsValue = 40
)

// changeWords says in a line which fields change, from what to what. Of user data
// it says which parts.
func changeWords(changes []step.Change) string {
	var out, parts []string
	left, userData := 0, false
	for _, ch := range changes {
		switch part, below := strings.CutPrefix(ch.Field, userDataField+"."); {
		case below:
			parts = append(parts, part)
		case ch.Field == userDataField:
			userData = true
		case len(out) == wordsChanges:
			left++
		default:
			out = append(out, strings.TrimPrefix(ch.Field, "awsLaunchTemplate.")+" "+transitionWords(ch))
		}
	}
	if left > 0 {
		out = append(out, strconv.Itoa(left)+" more")
	}
	switch {
	case len(parts) > wordsChanges:
		out = append(out, userDataField+" ("+strings.Join(parts[:wordsChanges], ", ")+" and "+strconv.Itoa(len(parts)-wordsChanges)+" more)")
	case len(parts) > 0:
		out = append(out, userDataField+" ("+strings.Join(parts, ", ")+")")
	case userData:
		out = append(out, userDataField)
	}
	return strings.Join(out, "; ")
}

// transitionWords leaves out what would be cut inside of an ARN, which then reads like
// another one.
func transitionWords(ch step.Change) string {
	from, to := valueWords(ch.From), valueWords(ch.To)
	for _, words := range []string{from, to} {
		if strings.Contains(words, "arn:") && strings.HasSuffix(words, "…") {
			return "changes"
		}
	}
	return from + " → " + to
}

func valueWords(v any) string {
	text, isText := v.(string)
	switch {
	case v == nil:
		return "(none)"
	case !isText:
		b, err := json.Marshal(v)
		if err != nil {
			return "?"
		}
		text = string(b)
	}
	text = content.Printable(text)
	if r := []rune(text); len(r) > wordsValue {
		return string(r[:wordsValue-1]) + "…"
	}
	return text
}
