package workspace

import (
	"cmp"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"net/http"
	"net/url"
	"strings"

	"github.com/weir-gitops/weir/cmd/weir/internal/advice"
	"github.com/weir-gitops/weir/cmd/weir/internal/client"
	"github.com/weir-gitops/weir/reconciler/plan"
	"github.com/weir-gitops/weir/source/upload"
	"github.com/weir-gitops/weir/status/commands"
	"github.com/weir-gitops/weir/status/wording"
)

// SendDraft asks a daemon to plan a work tree, or a ref of its repository.
func SendDraft(ctx context.Context, d client.Client, p Draft, note func(string)) (out Drafted, err error) {
	if d.Open {
		return out, advice.Usage("write https://", "the work tree would go to %s unencrypted", client.WithoutUser(d.Address))
	}
	tree, err := openWorkTree(cmp.Or(p.Path, "."))
	if err != nil {
		return out, err
	}
	if line, file := tree.Filtered(); line != "" && p.Ref == "" {
		return out, advice.Hinted(fmt.Errorf("the work tree is not sent: %q in %s makes Git store files in another form than on disk, such as encrypted", line, file),
			"commit, and send what is committed with --ref HEAD, or plan with --config FILE --path DIR")
	}
	w := &Workspace{}
	defer w.Close()
	is, err := w.fromWorkTree(ctx, tree, p.Ref)
	if err != nil {
		return out, err
	}
	if p.Ref == "" { // files that are unknown to Git may contain anything, and they would leave this machine
		is.Snapshot.Tree = tree.Tracked()
		if left, err := tree.Untracked(); err != nil {
			return out, err
		} else if len(left) > 0 {
			note(fmt.Sprintf("note: %s not sent, because Git does not track them: git add %s", wording.Count(len(left), "file"), strings.Join(left[:min(3, len(left))], " ")))
		}
	}
	archive, err := upload.Pack(is.Snapshot.Tree)
	var wrong *upload.Error
	if errors.As(err, &wrong) {
		return out, advice.Hinted(wrong, wrong.Hint)
	}
	if err != nil {
		return out, err
	}
	d.Kind, d.Patience = upload.ContentType, 3*commands.PlanWithin
	asked := url.Values{"repository": identities(tree), "target": p.Targets}
	body, err := d.Do(ctx, http.MethodPost, commands.PlanPath+"?"+asked.Encode(), archive.Data, client.MaxAnswer)
	if err != nil {
		return out, err
	}
	var answer commands.Planned
	if err := json.Unmarshal(body, &answer); err != nil || answer.Source == "" {
		return out, d.NotWeir()
	}
	if n := len(archive.Left); n > 0 {
		note(fmt.Sprintf("note: %s not sent, because weir reads no files that are so large or in Git LFS: %s and more", wording.Count(n, "file"), archive.Left[0]))
	}
	out = draftedBy(answer)
	out.what = is.what
	if is.lacks != nil && answer.Against != "" {
		out.behind, err = is.lacks(ctx, answer.Against)
	}
	return out, err
}

// draftedBy converts the response of a daemon to the result of planning a draft.
func draftedBy(answer commands.Planned) Drafted {
	out := Drafted{
		source: answer.Source, against: answer.Against, gone: answer.Gone, unaffected: answer.Unaffected, withheld: answer.Withheld, asFollowed: true,
	}
	for _, one := range answer.Plans {
		at := answer.Locations[one.Target]
		one.Account, one.Region = at.Account, at.Region
		one.Secretless = true // it has no digest, because it cannot be approved
		out.Reports = append(out.Reports, &plan.Report{
			Target: one.Target, Account: at.Account, Region: at.Region, Revision: one.Revision, Plan: one, Diagnostics: one.Diagnostics,
		})
	}
	return out
}
