package sdk

import (
	"fmt"
	"log/slog"

	"github.com/aws/smithy-go/logging"
)

// sdkLogger writes the SDK's messages to weir's log. The SDK's default is standard error.
type sdkLogger struct{ logger *slog.Logger }

// Logf implements logging.Logger.
func (l sdkLogger) Logf(c logging.Classification, format string, v ...any) {
	text := cut(withoutBlobs(fmt.Sprintf(format, v...)), longestSaid)
	if c == logging.Warn {
		l.logger.Warn("AWS SDK", "message", text)
		return
	}
	l.logger.Debug("AWS SDK", "message", text)
}
