// TRY(declaration, expression): takes the value out of a Result or returns its failure.
// CO_TRY is the same inside a coroutine. Both are plain statements.
#pragma once

// NOLINTBEGIN(bugprone-macro-parentheses): a declaration and a keyword cannot stand in parentheses
#define TRY_JOIN_(a, b) a##b
#define TRY_NAME_(a, b) TRY_JOIN_(a, b)
#define TRY_AS_(result, declaration, expression, leave) \
  auto result = (expression);                           \
  if (!result) leave std::move(result).failure();       \
  declaration = *std::move(result)

#define TRY(declaration, expression) \
  TRY_AS_(TRY_NAME_(try_, __LINE__), declaration, expression, return)
#define CO_TRY(declaration, expression) \
  TRY_AS_(TRY_NAME_(try_, __LINE__), declaration, expression, co_return)

// The same for Result<void>.
#define TRY_VOID_AS_(result, expression, leave) \
  auto result = (expression);                   \
  if (!result) leave std::move(result).failure()

#define TRY_VOID(expression) TRY_VOID_AS_(TRY_NAME_(try_, __LINE__), expression, return)
#define CO_TRY_VOID(expression) TRY_VOID_AS_(TRY_NAME_(try_, __LINE__), expression, co_return)
// NOLINTEND(bugprone-macro-parentheses)
