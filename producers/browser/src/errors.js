/** What a client throws, beside TypeError for a value of the wrong type. Its message never contains a value. */
export class DeniableError extends Error {
  /**
   * @param {string} reason for programs: a word such as `epsilon`
   * @param {string} message for people
   */
  constructor(reason, message) {
    super(message);
    this.reason = reason;
  }
}
