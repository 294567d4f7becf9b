package app

import "github.com/weir-gitops/weir/cmd/weir/internal/config"

// showConfiguration puts the configuration that holds on the page.
func (a *App) showConfiguration(c *config.Config) {
	text, err := c.Shown()
	if err != nil {
		a.log.Error("the configuration cannot be shown", "error", err)
		return
	}
	a.board.ShowConfiguration(text)
}
