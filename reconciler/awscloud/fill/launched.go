package fill

import (
	"context"
	"time"

	"github.com/weir-gitops/weir/reconciler/awscloud/read"
	"github.com/weir-gitops/weir/reconciler/observed"
)

// fillLaunched reads when instances were launched. Where AWS refuses, no time is known,
// and weir takes a pool's machines as in service from now on.
func (f *Filler) fillLaunched(ctx context.Context, s *observed.State, ids []string) error {
	s.Launched = read.Copied(s.Launched)
	for _, id := range ids {
		if _, known := s.Launched[id]; !known {
			s.Launched[id] = time.Time{}
		}
	}
	err := f.reader.Launched(ctx, ids, func(id string, at time.Time) { s.Launched[id] = at })
	if read.Denied(err) != nil {
		return nil
	}
	return err
}
